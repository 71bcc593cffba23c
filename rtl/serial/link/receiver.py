"""Receiver: delivers the messages of good frames, each once, in order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.arch.serial import HEADER_BYTES, MESSAGE_BYTES, NONCE_BYTES, FrameKind
from openmxu.rtl.serial.messages import byte_stream

__all__ = ["Receiver"]


class Receiver(wiring.Component):
    """Keeps one message until all of it has been taken; frames with another one are ignored meanwhile.

    Members
    -------
    contents, end, good
        Frames, as a deframer passes them on.
    messages
        Bytes of messages.
    acknowledges, acknowledged
        A good frame acknowledges the message with this number.
    dealt_with
        Number of the last message that was taken; 0 before the first.
    owes
        An acknowledgement with that number is due: a message has been taken, or has come once more.
    synchronizes, nonce
        A frame requests a restart of the link, and its nonce.
    enable
        While not set, messages and acknowledgements are ignored.
    restart
        Discard the message, and count from 0.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "contents": In(stream.Signature(8, always_ready=True)),
                "end": In(1),
                "good": In(1),
                "messages": Out(byte_stream()),
                "acknowledges": Out(1),
                "acknowledged": Out(8),
                "dealt_with": Out(8),
                "owes": Out(1),
                "synchronizes": Out(1),
                "nonce": Out(8 * NONCE_BYTES),
                "enable": In(1),
                "restart": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 1 << ceil_log2(MESSAGE_BYTES)
        m.submodules.buffer = buffer = Memory(shape=8, depth=depth, init=[])
        kind, number = Signal(8, reset_less=True), Signal(8, reset_less=True)
        place = Signal(range(HEADER_BYTES + depth + 1))  # of the byte in its frame; stops after the longest one
        busy = Signal()
        recording = Signal()  # the buffer was free when the frame began
        write = buffer.write_port()
        m.d.comb += [
            write.addr.eq(place - HEADER_BYTES),
            write.data.eq(self.contents.payload),
            write.en.eq(self.contents.valid & recording & (place >= HEADER_BYTES) & (place < HEADER_BYTES + depth)),
        ]
        with m.If(self.contents.valid):
            with m.If(place != HEADER_BYTES + depth):
                m.d.sync += place.eq(place + 1)
            with m.Switch(place):
                with m.Case(0):
                    m.d.sync += [kind.eq(self.contents.payload), recording.eq(~busy)]
                with m.Case(1):
                    m.d.sync += number.eq(self.contents.payload)
                with m.Case(2):
                    m.d.sync += self.acknowledged.eq(self.contents.payload)
                with m.Case(*range(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)):
                    m.d.sync += self.nonce.eq(Cat(self.nonce[8:], self.contents.payload))
        with m.If(self.end):
            m.d.sync += [place.eq(0), recording.eq(0)]

        # A frame is judged in the cycle of its end.
        good, comes, repeats = Signal(), Signal(), Signal()
        m.d.comb += [
            good.eq(self.end & self.good & (place >= HEADER_BYTES) & (place < HEADER_BYTES + depth)),
            self.acknowledges.eq(
                good & self.enable & ((kind == FrameKind.MESSAGE) | (kind == FrameKind.ACKNOWLEDGE)),
            ),
            self.synchronizes.eq(
                good & (kind == FrameKind.SYNCHRONIZE) & (place == HEADER_BYTES + NONCE_BYTES),
            ),
        ]
        with m.If(good & self.enable & (kind == FrameKind.MESSAGE) & (place > HEADER_BYTES)):
            m.d.comb += [
                comes.eq(recording & (number == (self.dealt_with + 1)[:8])),
                repeats.eq(number == self.dealt_with),
            ]
        taken = self._deliver(m, buffer, busy, comes, place)
        with m.If(taken):
            m.d.sync += self.dealt_with.eq(self.dealt_with + 1)
        m.d.comb += self.owes.eq(taken | repeats)
        with m.If(self.restart):
            m.d.sync += [busy.eq(0), recording.eq(0), self.messages.valid.eq(0), self.dealt_with.eq(0)]
        return m

    def _deliver(self, m: Module, buffer: Memory, busy: Signal, comes: Signal, place: Signal) -> Signal:
        """Pass the message on; returns a signal that is set when its last byte is taken."""
        read = buffer.read_port()
        index = Signal(range(buffer.depth))
        last = Signal.like(index)
        following = Signal.like(index)
        transfer, taken = Signal(), Signal()
        m.d.comb += [
            transfer.eq(self.messages.valid & self.messages.ready),
            taken.eq(transfer & self.messages.p.last),
            following.eq(Mux(transfer, index + 1, index)),
            read.addr.eq(following),
            self.messages.p.data.eq(read.data),
            self.messages.p.last.eq(index == last),
        ]
        m.d.sync += [index.eq(following), self.messages.valid.eq(busy & ~taken)]
        with m.If(taken):
            m.d.sync += busy.eq(0)
        with m.If(comes):
            m.d.sync += [busy.eq(1), index.eq(0), last.eq(place - (HEADER_BYTES + 1))]
        return taken
