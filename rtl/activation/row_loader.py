"""Row loader: copies unified buffer rows to the parameter memory or to a table."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.rtl.activation.parameter_memory import parameter_write_layout
from openmxu.rtl.activation.table_memory import table_word_bytes, table_write_layout
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import row_layout

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
        set_number = Signal(config.parameter_set_width, reset_less=True)
        sets_left = Signal.like(load.count, reset_less=True)
        is_table = Signal(reset_less=True)
        table_number = Signal(range(TABLES), reset_less=True)
        row = Signal(range(max(PARAMETER_ROWS, table_rows(config.size))))
        beat = Signal(range(max(2, groups, words)))
        held = Signal(row_layout(config), reset_less=True)
        writes, ends_row, ends_block, ends_load = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.rows.request.payload.eq(address),
            ends_row.eq(beat == Mux(is_table, words - 1, groups - 1)),
            ends_block.eq(row == Mux(is_table, table_rows(config.size) - 1, PARAMETER_ROWS - 1)),
            ends_load.eq(ends_block & (is_table | (sets_left == 1))),
        ]
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

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    address.eq(load.unified_buffer),
                    set_number.eq(load.first),
                    sets_left.eq(load.count),
                    is_table.eq(load.is_table),
                    table_number.eq(load.table_number),
                ]
                with m.If(self.loads.valid):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.rows.request.valid.eq(1)
                with m.If(self.rows.request.ready):
                    m.d.sync += address.eq(address + 1)
                    m.next = "RESPONSE"
            with m.State("RESPONSE"):
                m.d.sync += held.eq(self.rows.response.payload)
                with m.If(self.rows.response.valid):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += writes.eq(1)
                m.d.sync += beat.eq(beat + 1)
                with m.If(ends_row):
                    m.d.sync += [beat.eq(0), row.eq(row + 1)]
                    m.next = "REQUEST"
                    with m.If(ends_block):
                        m.d.sync += [row.eq(0), set_number.eq(set_number + 1), sets_left.eq(sets_left - 1)]
                    with m.If(ends_load):
                        m.next = "END"
            with m.State("END"):
                m.d.comb += self.loads.ready.eq(1)
                m.next = "IDLE"
        return m
