"""Result writer: collects the lanes' bytes into unified buffer rows."""

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
        Capacity in rows; there is no backpressure, the sequencer counts credits.

    Members
    -------
    addresses
        First row of each walk; taken when the walk's last row is written.
    bytes
        See :func:`openmxu.rtl.activation.activation_datapath.result_beat_layout`.
    results
        Write port of the unified buffer.
    written, done
        The unified buffer takes a row; it is the last one of a walk.
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
        result = data.StructLayout({"row": row_layout(config), "last": 1})
        m.submodules.rows = rows = StreamFIFO(result, self._rows, always_ready=True)

        ends_row = Signal()
        m.d.comb += ends_row.eq(self.bytes.active & self.bytes.ends_row)
        columns = []
        for lane in range(config.activation_lanes):
            newest = self.bytes.bytes[lane]
            collected = Signal(8 * (groups - 1), name=f"collected_{lane}", reset_less=True)
            with m.If(self.bytes.active):
                m.d.sync += collected.eq(Cat(collected, newest)[8:])
            columns.append(Cat(collected, newest))
        # A register before the queue, because the lanes are far away on the chip.
        row = Signal(result, reset_less=True)
        has_row = Signal()
        m.d.sync += [has_row.eq(ends_row), row.last.eq(self.bytes.ends_walk), Value.cast(row.row).eq(Cat(columns))]

        next_address = Signal(config.unified_buffer_address_width, reset_less=True)
        begins = Signal(init=1)
        request = self.results.request
        m.d.comb += [
            rows.input.valid.eq(has_row),
            rows.input.payload.eq(row),
            request.p.address.eq(Mux(begins, self.addresses.payload, next_address)),
            request.p.row.eq(rows.output.p.row),
            request.valid.eq(rows.output.valid),
            rows.output.ready.eq(request.ready),
            self.written.eq(rows.output.valid & rows.output.ready),
            self.done.eq(self.written & rows.output.p.last),
            self.addresses.ready.eq(self.done),
        ]
        with m.If(self.written):
            m.d.sync += [next_address.eq(request.p.address + 1), begins.eq(rows.output.p.last)]
        return m
