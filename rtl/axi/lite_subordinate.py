"""AXI4-Lite subordinate: turns accesses of a bus into a stream of requests, one at a time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.axi.channels import LiteSignature
from openmxu.rtl.shell.interfaces import REGISTER_WIDTH, access_layout

__all__ = ["LiteSubordinate"]

_OKAY, _SLVERR = 0, 2


class LiteSubordinate(wiring.Component):
    """Reads and writes take turns when both wait. A write of a part of a word is refused with SLVERR; one with all
    strobes 0 does nothing. All outputs to the bus are registered.

    Parameters
    ----------
    address_width
        Bits of a byte address.

    Members
    -------
    bus
        AXI4-Lite.
    requests
        Accesses, in order; only reads are answered.
    responses
        The words that were read.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "bus": In(LiteSignature(address_width)),
                "requests": Out(stream.Signature(access_layout(address_width))),
                "responses": In(stream.Signature(REGISTER_WIDTH)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, request = self.bus, self.requests.p
        writes_next = Signal()
        strobe = Signal.like(bus.w.p.strb)
        refused = Signal()
        m.d.comb += refused.eq(~strobe.all() & strobe.any())
        with m.FSM():
            with m.State("IDLE"):
                with m.If(bus.aw.valid & bus.w.valid & (writes_next | ~bus.ar.valid)):
                    m.d.sync += [
                        bus.aw.ready.eq(1),
                        bus.w.ready.eq(1),
                        request.word.eq(bus.aw.p.addr[2:]),
                        request.data.eq(bus.w.p.data),
                        request.write.eq(1),
                        strobe.eq(bus.w.p.strb),
                        writes_next.eq(0),
                    ]
                    m.next = "TAKE_WRITE"
                with m.Elif(bus.ar.valid):
                    m.d.sync += [
                        bus.ar.ready.eq(1),
                        request.word.eq(bus.ar.p.addr[2:]),
                        request.write.eq(0),
                        writes_next.eq(1),
                    ]
                    m.next = "TAKE_READ"

            with m.State("TAKE_WRITE"):
                m.d.sync += [bus.aw.ready.eq(0), bus.w.ready.eq(0)]
                with m.If(strobe.all()):
                    m.d.sync += self.requests.valid.eq(1)
                    m.next = "WRITE"
                with m.Else():
                    m.d.sync += [bus.b.valid.eq(1), bus.b.p.resp.eq(_SLVERR)]
                    with m.If(~refused):
                        m.d.sync += bus.b.p.resp.eq(_OKAY)
                    m.next = "REPLY"
            with m.State("WRITE"):
                with m.If(self.requests.ready):
                    m.d.sync += [self.requests.valid.eq(0), bus.b.valid.eq(1), bus.b.p.resp.eq(_OKAY)]
                    m.next = "REPLY"
            with m.State("REPLY"):
                with m.If(bus.b.ready):
                    m.d.sync += bus.b.valid.eq(0)
                    m.next = "IDLE"

            with m.State("TAKE_READ"):
                m.d.sync += [bus.ar.ready.eq(0), self.requests.valid.eq(1)]
                m.next = "READ"
            with m.State("READ"):
                with m.If(self.requests.ready):
                    m.d.sync += self.requests.valid.eq(0)
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += self.responses.ready.eq(1)
                with m.If(self.responses.valid):
                    m.d.sync += [bus.r.valid.eq(1), bus.r.p.data.eq(self.responses.payload)]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                with m.If(bus.r.ready):
                    m.d.sync += bus.r.valid.eq(0)
                    m.next = "IDLE"
        return m
