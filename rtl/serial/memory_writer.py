"""Memory writer: a write port of the core, served by messages."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.serial import DATA_BYTES, MessageKind, ReplyStatus
from openmxu.rtl.common.interfaces import BEATS_WIDTH, WritePortSignature
from openmxu.rtl.serial.messages import byte_stream, memory_error_layout, message_layout

__all__ = ["MemoryWriter"]


class MemoryWriter(wiring.Component):
    """Sends each run of bytes whose strobes are set, and waits for its reply; other bytes are not sent.

    Parameters
    ----------
    address_width, data_bytes
        Widths of the port.

    Members
    -------
    port, offset
        Write port of the core, and the offset added to its addresses.
    messages, replies
        Write messages, and their replies.
    errors
        Replies that report an error; their requests count as done nevertheless.
    flush
        While set, requests are discarded; a message that has begun ends with the bytes taken so far.
    idle
        No request is in progress.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        super().__init__(
            {
                "port": In(WritePortSignature(address_width, data_bytes)),
                "offset": In(address_width),
                "messages": Out(byte_stream()),
                "replies": In(byte_stream()),
                "errors": Out(stream.Signature(memory_error_layout(address_width), always_ready=True)),
                "flush": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port, message = self.port, self.messages
        layout = message_layout(MessageKind.WRITE_HOST)
        address = Signal(self._address_width, reset_less=True)
        beats = Signal(BEATS_WIDTH, reset_less=True)
        data = Signal(8 * self._data_bytes, reset_less=True)
        strobes = Signal(self._data_bytes, reset_less=True)
        place = Signal(range(self._data_bytes))
        begun = Signal()  # the head of a message has been sent
        byte = Signal(8, reset_less=True)  # waits until it is known whether it is the message's last one
        count = Signal(range(DATA_BYTES + 1))  # bytes of the message so far, that one included
        head = Signal(layout)
        head_place = Signal(range(layout.size // 8))
        ending = Signal()
        steps = Signal()  # to the next byte of the beat
        first = Signal(self._address_width, reset_less=True)  # address of the message
        m.d.comb += [
            self.errors.p.addr.eq(first),
            head.kind.eq(MessageKind.WRITE_HOST),
            head.address.eq(first),
        ]
        with m.If(steps):
            m.d.sync += [
                data.eq(data >> 8),
                strobes.eq(strobes >> 1),
                address.eq(address + 1),
                place.eq(place + 1),
            ]
            with m.If(place == self._data_bytes - 1):
                m.d.sync += beats.eq(beats - 1)
        with m.FSM():

            def after_step() -> None:
                """Continue with the next byte, with the next beat, or at the end."""
                with m.If(place == self._data_bytes - 1):
                    m.next = "BEAT"
                    with m.If(beats == 1):
                        m.next = "END"
                with m.Else():
                    m.next = "BYTES"

            with m.State("IDLE"):
                m.d.comb += [port.request.ready.eq(1), self.replies.ready.eq(1), self.idle.eq(1)]
                m.d.sync += [
                    address.eq(port.request.p.address + self.offset),
                    beats.eq(port.request.p.beats),
                    place.eq(0),
                    ending.eq(0),
                ]
                with m.If(port.request.valid & ~self.flush):
                    m.next = "BEAT"
            with m.State("BEAT"):
                m.d.comb += port.data.ready.eq(~self.flush)
                m.d.sync += [data.eq(port.data.p.data), strobes.eq(port.data.p.strobe)]
                with m.If(self.flush):
                    m.next = "END"
                with m.Elif(port.data.valid):
                    m.next = "BYTES"
            with m.State("BYTES"):
                with m.If(strobes[0] & ~begun):
                    m.d.sync += [head_place.eq(0), first.eq(address), count.eq(0)]
                    m.next = "HEAD"
                with m.Elif(strobes[0] & (count != DATA_BYTES)):
                    m.d.comb += [message.valid.eq(count != 0), steps.eq((count == 0) | message.ready)]
                    with m.If(steps):
                        m.d.sync += [byte.eq(data[:8]), count.eq(count + 1)]
                        after_step()
                with m.Elif(begun):
                    m.d.comb += [message.valid.eq(1), message.p.last.eq(1)]
                    with m.If(message.ready):
                        m.next = "AWAIT"
                with m.Else():
                    m.d.comb += steps.eq(1)
                    after_step()
            with m.State("HEAD"):
                m.d.comb += message.valid.eq(1)
                with m.If(message.ready):
                    m.d.sync += head_place.eq(head_place + 1)
                    with m.If(head_place == layout.size // 8 - 1):
                        m.d.sync += begun.eq(1)
                        m.next = "BYTES"
            with m.State("END"):
                m.d.sync += ending.eq(1)
                m.d.comb += [message.valid.eq(begun), message.p.last.eq(1)]
                with m.If(~begun):
                    m.next = "DONE"
                with m.Elif(message.ready):
                    m.next = "AWAIT"
            with m.State("AWAIT"):
                m.d.comb += self.replies.ready.eq(1)
                m.d.sync += begun.eq(0)
                with m.If(self.replies.valid):
                    m.next = "STATUS"
                    with m.If(self.replies.p.last):
                        m.next = "JUDGE"
                        m.d.sync += self.errors.p.resp.eq(ReplyStatus.ERROR)
            with m.State("STATUS"):
                m.d.comb += self.replies.ready.eq(1)
                with m.If(self.replies.valid):
                    m.d.sync += self.errors.p.resp.eq(
                        Mux(
                            self.replies.p.last & ~self.replies.p.data[2:].any(), self.replies.p.data, ReplyStatus.ERROR
                        )
                    )
                    m.next = "JUDGE"
                    with m.If(~self.replies.p.last):
                        m.next = "DROP"
            with m.State("DROP"):
                m.d.comb += self.replies.ready.eq(1)
                with m.If(self.replies.valid & self.replies.p.last):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += self.errors.valid.eq(self.errors.p.resp != ReplyStatus.OKAY)
                m.next = "BYTES"
                with m.If(ending):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += port.done.valid.eq(~self.flush)
                with m.If(port.done.ready | self.flush):
                    m.next = "IDLE"
        with m.If(begun):
            m.d.comb += message.p.data.eq(byte)
        with m.Else():
            m.d.comb += message.p.data.eq(Value.cast(head).word_select(head_place, 8))
        return m
