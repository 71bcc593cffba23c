"""A small FIFO whose oldest payload is in a register."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.common.stream_fifo import StreamFIFO

__all__ = ["BufferedFIFO"]


class BufferedFIFO(wiring.Component):
    """First in, first out, like a :class:`~openmxu.rtl.common.stream_fifo.StreamFIFO`, for payloads on which much logic
    depends: it need not wait for distributed RAM. A payload leaves in the cycle after it came, at the earliest.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Entries, at least 2.

    Members
    -------
    input, output
        Streams. ``input.ready`` is a register, and so are ``output.valid`` and the payload.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < 2:
            raise ValueError(f"depth must be at least 2, not {depth}")
        self._depth = depth
        super().__init__({"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape = self.input.p.shape()
        m.submodules.others = others = StreamFIFO(shape, self._depth - 1)
        oldest = Signal(shape, reset_less=True)
        has_oldest = Signal()
        moves = Signal()
        # A payload that finds the queue empty does not pass through the memory.
        m.d.comb += [
            moves.eq(~has_oldest | self.output.ready),
            self.input.ready.eq(others.input.ready),
            others.input.payload.eq(self.input.payload),
            others.input.valid.eq(self.input.valid & (others.output.valid | ~moves)),
            others.output.ready.eq(moves),
            self.output.valid.eq(has_oldest),
            self.output.payload.eq(oldest),
        ]
        with m.If(moves):
            m.d.sync += [
                has_oldest.eq(others.output.valid | self.input.valid),
                oldest.eq(Mux(others.output.valid, others.output.payload, self.input.payload)),
            ]
        return m
