"""Message arbiter: sends the messages of several senders, one after the other."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.serial.messages import byte_stream

__all__ = ["MessageArbiter"]


class MessageArbiter(wiring.Component):
    """Passes on whole messages.

    Parameters
    ----------
    senders
        Names, highest priority first.

    Members
    -------
    input_<name>
        Messages of each sender.
    output
        Messages of all of them.
    """

    def __init__(self, senders: Sequence[str]) -> None:
        self._senders = tuple(senders)
        super().__init__(
            {**{f"input_{name}": In(byte_stream()) for name in self._senders}, "output": Out(byte_stream())}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inputs = [getattr(self, f"input_{name}") for name in self._senders]
        chosen = Signal(range(len(inputs)))
        busy = Signal()
        with m.Switch(chosen):
            for number, messages in enumerate(inputs):
                with m.Case(number):
                    m.d.comb += [
                        self.output.payload.eq(messages.payload),
                        self.output.valid.eq(messages.valid & busy),
                        messages.ready.eq(self.output.ready & busy),
                    ]
        with m.If(self.output.valid & self.output.ready & self.output.p.last):
            m.d.sync += busy.eq(0)
        with m.If(~busy):
            for number, messages in reversed(list(enumerate(inputs))):  # later statements win
                with m.If(messages.valid):
                    m.d.sync += [chosen.eq(number), busy.eq(1)]
        return m
