"""Short message: sends a struct byte by byte."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.serial.messages import byte_stream

__all__ = ["ShortMessage"]


class ShortMessage(wiring.Component):
    """Sends structs, lowest byte first.

    Parameters
    ----------
    layout
        Layout of the structs, a whole number of bytes.

    Members
    -------
    input
        Structs; each is taken with its last byte, and is stable until then.
    output
        Their bytes.
    """

    def __init__(self, layout: data.StructLayout) -> None:
        super().__init__({"input": In(stream.Signature(layout)), "output": Out(byte_stream())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.input.p.shape().size // 8
        place = Signal(range(size))
        last = Signal()
        m.d.comb += [
            last.eq(place == size - 1),
            self.output.valid.eq(self.input.valid),
            self.output.p.data.eq(Value.cast(self.input.payload).word_select(place, 8)),
            self.output.p.last.eq(last),
            self.input.ready.eq(self.output.ready & last),
        ]
        with m.If(self.output.valid & self.output.ready):
            m.d.sync += place.eq(Mux(last, 0, place + 1))
        return m
