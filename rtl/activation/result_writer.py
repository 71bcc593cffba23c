"""Result writer: bytes of the lanes become unified buffer rows."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.activation.activation_datapath import result_beat_layout
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import row_layout
from openmxu.rtl.common.stream_fifo import StreamFIFO

__all__ = ["ResultWriter"]


class ResultWriter(wiring.Component):
    """Collects rows and writes those of a walk to consecutive rows of the unified buffer.

    Parameters
    ----------
    rows
        Rows that there is room for: whoever makes results counts them.

    Members
    -------
    addresses
        First row of each walk; taken a cycle after the walk's last byte.
    bytes
        See :func:`openmxu.rtl.activation.activation_datapath.result_beat_layout`.
    results
        Write port of the unified buffer.
    written, done
        A row is taken by the unified buffer; it is the last one of a walk.
    """

    def __init__(self, config: Config, *, rows: int) -> None:
        self._config = config
        self._rows = rows
        super().__init__(
            {
                "addresses": In(stream.Signature(config.unified_buffer_address_width)),
                "bytes": In(result_beat_layout(config)),
                "results": Out(unified_buffer.WritePortSignature(config)),
                "written": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        groups = config.column_groups
        result = data.StructLayout(
            {"address": config.unified_buffer_address_width, "row": row_layout(config), "last": 1}
        )
        m.submodules.rows = rows = StreamFIFO(result, self._rows)

        ends_row = Signal()
        count = Signal(config.unified_buffer_address_width)
        m.d.comb += ends_row.eq(self.bytes.active & self.bytes.ends_row)
        columns = []
        for lane in range(config.activation_lanes):
            newest = self.bytes.bytes[lane]
            collected = Signal(8 * (groups - 1), name=f"collected_{lane}", reset_less=True)
            with m.If(self.bytes.active):
                m.d.sync += collected.eq(Cat(collected, newest)[8:])
            columns.append(Cat(collected, newest))
        with m.If(ends_row):
            m.d.sync += count.eq(Mux(self.bytes.ends_walk, 0, count + 1))

        # A register before the queue: the lanes' bytes come from far.
        row = Signal(result, reset_less=True)
        has_row = Signal()
        m.d.sync += [
            has_row.eq(ends_row),
            row.address.eq(count),
            row.last.eq(self.bytes.ends_walk),
            Value.cast(row.row).eq(Cat(columns)),
        ]
        m.d.comb += [
            rows.input.valid.eq(has_row),
            rows.input.payload.eq(row),
            rows.input.p.address.eq(self.addresses.payload + row.address),
            self.addresses.ready.eq(has_row & row.last),
            self.results.request.p.address.eq(rows.output.p.address),
            self.results.request.p.row.eq(rows.output.p.row),
            self.results.request.valid.eq(rows.output.valid),
            rows.output.ready.eq(self.results.request.ready),
            self.written.eq(rows.output.valid & rows.output.ready),
            self.done.eq(self.written & rows.output.p.last),
        ]
        return m
