"""Pipeline registers for streams: a skid buffer for payload, valid and ready, or one register for payload and valid."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterSlice", "StreamRegister"]


class RegisterSlice(wiring.Component):
    """Skid buffer: a queue of two payloads whose outputs, ready included, are registers; one payload per cycle.

    Parameters
    ----------
    shape
        Shape of the payload.
    half_rate
        A queue of one payload, which takes the next one in the cycle after that one has left: half the flip-flops and
        no multiplexers, for streams with at most one transfer in two cycles.

    Members
    -------
    input, output
        Streams.
    """

    def __init__(self, shape: ShapeLike, *, half_rate: bool = False) -> None:
        self._shape = shape
        self._half_rate = half_rate
        super().__init__({"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(self._shape, reset_less=True)
        if self._half_rate:
            is_empty = Signal(init=1)
            m.d.comb += [
                self.input.ready.eq(is_empty),
                self.output.valid.eq(~is_empty),
                self.output.payload.eq(first),
            ]
            with m.If(is_empty):
                m.d.sync += [first.eq(self.input.payload), is_empty.eq(~self.input.valid)]
            with m.Elif(self.output.ready):
                m.d.sync += is_empty.eq(1)
            return m

        has_first = Signal()
        spare = Signal(self._shape, reset_less=True)
        has_room = Signal(init=1)  # `spare` is empty
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


class StreamRegister(wiring.Component):
    """One register for payload and valid: one payload per cycle without logic per bit, but ``input.ready`` depends on
    ``output.ready`` through a gate.

    Parameters
    ----------
    shape
        Shape of the payload.

    Members
    -------
    input, output
        Streams.
    """

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(self.input.p.shape(), reset_less=True)
        m.d.comb += [self.input.ready.eq(~self.output.valid | self.output.ready), self.output.payload.eq(held)]
        with m.If(self.input.ready):
            m.d.sync += [held.eq(self.input.payload), self.output.valid.eq(self.input.valid)]
        return m
