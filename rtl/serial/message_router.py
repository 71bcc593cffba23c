"""Message router: passes messages to receivers by their kind."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.serial import MessageKind
from openmxu.rtl.serial.messages import byte_stream

__all__ = ["MessageRouter"]


class MessageRouter(wiring.Component):
    """Passes on whole messages; those of a kind without a receiver are dropped.

    Parameters
    ----------
    receivers
        The kinds of messages for each receiver, by name.

    Members
    -------
    input
        Messages.
    output_<name>
        Messages for each receiver.
    """

    def __init__(self, receivers: Mapping[str, Sequence[MessageKind]]) -> None:
        self._receivers = dict(receivers)
        super().__init__({"input": In(byte_stream()), **{f"output_{name}": Out(byte_stream()) for name in receivers}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs = [getattr(self, f"output_{name}") for name in self._receivers]
        no_receiver = len(outputs)
        wanting = Signal(range(no_receiver + 1))
        kept = Signal.like(wanting)
        receiver = Signal.like(wanting)
        inside = Signal()  # the first byte of the message has been taken
        m.d.comb += [wanting.eq(no_receiver), receiver.eq(Mux(inside, kept, wanting))]
        with m.Switch(self.input.p.data):
            for number, kinds in enumerate(self._receivers.values()):
                with m.Case(*kinds):
                    m.d.comb += wanting.eq(number)
        with m.Switch(receiver):
            for number, messages in enumerate(outputs):
                with m.Case(number):
                    m.d.comb += [
                        messages.payload.eq(self.input.payload),
                        messages.valid.eq(self.input.valid),
                        self.input.ready.eq(messages.ready),
                    ]
            with m.Default():
                m.d.comb += self.input.ready.eq(1)
        with m.If(self.input.valid & self.input.ready):
            m.d.sync += [inside.eq(~self.input.p.last), kept.eq(receiver)]
        return m
