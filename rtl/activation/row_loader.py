"""Row loader: copies unified buffer rows to the parameter memory or to a table."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.rtl.activation.parameter_memory import parameter_write_layout
from openmxu.rtl.activation.table_memory import table_word_bytes, table_write_layout
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer, row_layout

__all__ = ["RowLoader", "load_layout"]


def load_layout(config: Config) -> data.StructLayout:
    """Rows from ``unified_buffer`` on: table ``table_number`` if ``is_table``, else ``count`` parameter sets from
    ``first`` on."""
    return data.StructLayout(
        {
            "unified_buffer": config.unified_buffer_address_width,
            "is_table": 1,
            "table_number": range(TABLES),
            "first": config.parameter_set_width,
            "count": range(config.parameter_sets + 1),
        }
    )


class RowLoader(wiring.Component):
    """Reads row after row and writes it byte by byte, or word by word.

    A row is asked for while the one before it is written, so late that there is always room for it.

    Row i of a parameter set's eight rows holds byte i of every column's parameters and is written in S/L cycles. A row
    of a table holds S entries and is written in words of
    :func:`openmxu.rtl.activation.table_memory.table_word_bytes`.

    Members
    -------
    loads
        Loads, see :func:`load_layout`; taken in the cycle of the last write.
    rows
        Read port of the unified buffer.
    parameters, table
        Writes to the parameter memory and to the tables.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "loads": In(stream.Signature(load_layout(config))),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "parameters": Out(parameter_write_layout(config)),
                "table": Out(table_write_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        groups = config.column_groups
        word_bytes = table_word_bytes(config)
        words = config.size // word_bytes
        row_bits = ceil_log2(table_rows(config.size))
        load = self.loads.p

        address = Signal(config.unified_buffer_address_width, reset_less=True)
        is_table = Signal(reset_less=True)
        table_number = Signal(range(TABLES), reset_less=True)
        # The row that comes next, and the one that is written.
        next_set, set_number = (
            Signal(config.parameter_set_width, reset_less=True, name=n) for n in ("next_set", "set")
        )
        rows = range(max(PARAMETER_ROWS, table_rows(config.size)))
        next_row, row = Signal(rows), Signal(rows, reset_less=True)
        sets_left = Signal.like(load.count, reset_less=True)
        held = Signal(row_layout(config), reset_less=True)
        beat = Signal(range(max(2, groups, words)))
        asks, comes, writes, follows = Signal(), Signal(), Signal(), Signal()
        ends_block, comes_last, is_last, ends_row = Signal(), Signal(), Signal(), Signal()
        # A row is due as soon as writing the one before it has ended when it comes.
        early = 1 + UnifiedBuffer.read_latency
        due = {
            table: comes & ~comes_last if beats <= early else writes & ~is_last & (beat == beats - early)
            for table, beats in ((False, groups), (True, words))
        }
        m.d.comb += [
            comes.eq(self.rows.response.valid),
            ends_block.eq(next_row == Mux(is_table, table_rows(config.size) - 1, PARAMETER_ROWS - 1)),
            comes_last.eq(ends_block & (is_table | (sets_left == 1))),
            follows.eq(Mux(is_table, due[True], due[False])),
            ends_row.eq(writes & (beat == Mux(is_table, words - 1, groups - 1))),
            self.rows.request.valid.eq(asks | follows),
            self.rows.request.payload.eq(address),
        ]
        m.d.sync += asks.eq(self.rows.request.valid & ~self.rows.request.ready)
        with m.If(self.rows.request.valid & self.rows.request.ready):
            m.d.sync += address.eq(address + 1)
        # A pipeline register before the memories.
        m.d.sync += [
            self.parameters.enable.eq(writes & ~is_table),
            self.parameters.address.eq((set_number << ceil_log2(groups)) | beat),
            self.parameters.byte.eq(row),
            self.table.enable.eq(writes & is_table),
            self.table.address.eq(Cat(beat[: ceil_log2(words)], row[:row_bits], table_number)),
        ]
        for lane in range(config.activation_lanes):
            own = Value.cast(held)[8 * lane * groups : 8 * (lane + 1) * groups]
            m.d.sync += self.parameters.data[lane].eq(own.word_select(beat[: ceil_log2(groups)], 8))
        word = Value.cast(held).word_select(beat[: ceil_log2(words)], 8 * word_bytes)
        m.d.sync += Value.cast(self.table.data).eq(word)

        with m.If(writes):
            m.d.sync += beat.eq(beat + 1)
        with m.If(ends_row):
            m.d.sync += [beat.eq(0), writes.eq(0)]
        with m.If(comes):
            m.d.sync += [
                held.eq(self.rows.response.payload),
                row.eq(next_row),
                set_number.eq(next_set),
                is_last.eq(comes_last),
                writes.eq(1),
                next_row.eq(next_row + 1),
            ]
            with m.If(ends_block):
                m.d.sync += [next_row.eq(0), next_set.eq(next_set + 1), sets_left.eq(sets_left - 1)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    address.eq(load.unified_buffer),
                    next_set.eq(load.first),
                    sets_left.eq(load.count),
                    is_table.eq(load.is_table),
                    table_number.eq(load.table_number),
                ]
                with m.If(self.loads.valid):
                    m.d.sync += asks.eq(1)
                    m.next = "LOAD"
            with m.State("LOAD"):
                with m.If(ends_row & is_last):
                    m.next = "END"
            with m.State("END"):
                m.d.comb += self.loads.ready.eq(1)
                m.next = "IDLE"
        return m
