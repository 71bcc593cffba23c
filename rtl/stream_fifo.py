"""A small FIFO with stream interfaces and a shaped payload."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, ShapeLike, Value
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamFIFO"]


class StreamFIFO(wiring.Component):
    """First in, first out; a payload leaves in the cycle after it came, at the earliest.

    Storage is read asynchronously: distributed RAM or registers, for queues of a few entries.

    Parameters
    ----------
    shape
        Of the payload.
    depth
        Entries, at least 1.

    Members
    -------
    input, output
        Streams.
    level
        Entries held.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        self._depth = depth
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    @property
    def depth(self) -> int:
        """Entries that the FIFO holds."""
        return self._depth

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = Shape.cast(self.input.p.shape()).width
        m.submodules.queue = queue = fifo.SyncFIFO(width=width, depth=self.depth)
        m.d.comb += [
            queue.w_data.eq(Value.cast(self.input.payload)),
            queue.w_en.eq(self.input.valid),
            self.input.ready.eq(queue.w_rdy),
            Value.cast(self.output.payload).eq(queue.r_data),
            self.output.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.output.ready),
            self.level.eq(queue.level),
        ]
        return m
