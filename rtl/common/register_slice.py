"""Register slice: payload, valid and ready of a stream each come out of a register."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterSlice"]


class RegisterSlice(wiring.Component):
    """A queue of two payloads without logic between its registers and its ports; one payload per cycle.

    Parameters
    ----------
    shape
        Of the payload.

    Members
    -------
    input, output
        Streams.
    """

    def __init__(self, shape: ShapeLike) -> None:
        self._shape = shape
        super().__init__({"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(self._shape, reset_less=True)
        has_first = Signal()
        spare = Signal(self._shape, reset_less=True)
        has_room = Signal(init=1)  # nothing is in `spare`
        m.d.comb += [
            self.input.ready.eq(has_room),
            self.output.valid.eq(has_first),
            self.output.payload.eq(first),
        ]
        with m.If(has_room):
            m.d.sync += spare.eq(self.input.payload)
        moves = Signal()
        m.d.comb += moves.eq(~has_first | self.output.ready)
        m.d.sync += has_room.eq(moves | (has_room & ~self.input.valid))
        with m.If(moves):
            m.d.sync += [has_first.eq(self.input.valid | ~has_room), first.eq(Mux(has_room, self.input.payload, spare))]
        return m
