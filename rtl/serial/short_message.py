"""Short message: a struct as bytes, one after the other."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.serial.messages import byte_stream

__all__ = ["ShortMessage"]


class ShortMessage(wiring.Component):
    """Sends structs, lowest byte first.

    Parameters
    ----------
    layout
        Of whole bytes.

    Members
    -------
    input
        Structs; one is taken when nothing of another is left.
    output
        Their bytes.
    """

    def __init__(self, layout: data.StructLayout) -> None:
        super().__init__({"input": In(stream.Signature(layout)), "output": Out(byte_stream())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.input.p.shape().size // 8
        rest = Signal(8 * size, reset_less=True)
        left = Signal(range(size + 1))
        m.d.comb += [
            self.input.ready.eq(left == 0),
            self.output.valid.eq(left != 0),
            self.output.p.data.eq(rest[:8]),
            self.output.p.last.eq(left == 1),
        ]
        with m.If(left == 0):
            m.d.sync += rest.eq(Value.cast(self.input.payload))
            with m.If(self.input.valid):
                m.d.sync += left.eq(size)
        with m.Elif(self.output.ready):
            m.d.sync += [rest.eq(rest >> 8), left.eq(left - 1)]
        return m
