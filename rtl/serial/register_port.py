"""Register port: turns messages into register accesses."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.serial import MESSAGES, MessageKind
from openmxu.rtl.serial.messages import byte_stream, message_layout
from openmxu.rtl.serial.short_message import ShortMessage
from openmxu.rtl.shell.interfaces import REGISTER_WIDTH, access_layout

__all__ = ["RegisterPort"]


class RegisterPort(wiring.Component):
    """Makes one access at a time. Messages of a wrong length are dropped.

    Parameters
    ----------
    address_width
        Bits of a byte address.

    Members
    -------
    messages
        Accesses.
    answers
        A message for each read.
    requests, responses
        Accesses to a register file, and its responses.
    """

    def __init__(self, address_width: int) -> None:
        self._address_width = address_width
        super().__init__(
            {
                "messages": In(byte_stream()),
                "answers": Out(byte_stream()),
                "requests": Out(stream.Signature(access_layout(address_width))),
                "responses": In(stream.Signature(REGISTER_WIDTH)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.answer = answer = ShortMessage(message_layout(MessageKind.REGISTER_VALUE))
        connect(m, answer.output, flipped(self.answers))
        m.d.comb += [
            answer.input.p.kind.eq(MessageKind.REGISTER_VALUE),
            answer.input.p.value.eq(self.responses.payload),
            answer.input.valid.eq(self.responses.valid),
            self.responses.ready.eq(answer.input.ready),
        ]
        read, write = (MESSAGES[kind].size for kind in (MessageKind.READ_REGISTER, MessageKind.WRITE_REGISTER))
        # The bytes received, each at its place in the longer message.
        held = Signal(8 * write, reset_less=True)
        message = data.View(message_layout(MessageKind.WRITE_REGISTER), held)
        count = Signal(range(write + 1))
        is_write = Signal()
        m.d.comb += [
            is_write.eq(message.kind == MessageKind.WRITE_REGISTER),
            self.requests.p.word.eq(message.offset[2 : self._address_width]),
            self.requests.p.data.eq(message.value),
            self.requests.p.write.eq(is_write),
        ]
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.messages.ready.eq(1)
                with m.If(self.messages.valid):
                    with m.Switch(count):
                        for place in range(write):
                            with m.Case(place):
                                m.d.sync += held.word_select(place, 8).eq(self.messages.p.data)
                    with m.If(count != write):
                        m.d.sync += count.eq(count + 1)
                    with m.If(self.messages.p.last):
                        m.d.sync += count.eq(0)
                        fits = Signal()
                        kind = Value.cast(held)[:8]
                        m.d.comb += fits.eq(
                            ((count == read - 1) & (kind == MessageKind.READ_REGISTER))
                            | ((count == write - 1) & (kind == MessageKind.WRITE_REGISTER))
                        )
                        with m.If(fits):
                            m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.requests.valid.eq(1)
                with m.If(self.requests.ready):
                    m.next = "TAKE"
        return m
