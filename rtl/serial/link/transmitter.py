"""Transmitter: sends messages in frames, again and again until they are acknowledged."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.arch.serial import HEADER_BYTES, LINK_VERSION, MESSAGE_BYTES, NONCE_BYTES, FrameKind
from openmxu.rtl.serial.messages import byte_stream

__all__ = ["ACKNOWLEDGE_CYCLES", "Transmitter"]

ACKNOWLEDGE_CYCLES = 64
"""Cycles that an acknowledgement waits for a message that could carry it."""

_ANSWER_BYTES = HEADER_BYTES + NONCE_BYTES + 1


class Transmitter(wiring.Component):
    """Keeps one message until it is acknowledged. Frames are never cut off.

    Parameters
    ----------
    retransmit_cycles
        Cycles from the end of a frame until its message is sent again.

    Members
    -------
    messages
        Bytes of messages; the first one of a message is taken once the message before has been acknowledged.
    frames
        Bytes of frames, without checksum.
    acknowledges, acknowledged
        The other side acknowledges the message with this number.
    dealt_with, owes
        Number of the last message from the other side that was taken here; an acknowledgement of it is due.
    synchronizes, nonce
        A request to restart the link, and its nonce. One with the previous nonce is answered and changes nothing else.
    restart
        Set for one cycle when this side restarts: messages in flight are discarded.
    enable
        The link has been started.
    """

    def __init__(self, retransmit_cycles: int) -> None:
        if retransmit_cycles < 1:
            raise ValueError(f"retransmit_cycles must be at least 1, not {retransmit_cycles}")
        self._retransmit_cycles = retransmit_cycles
        super().__init__(
            {
                "messages": In(byte_stream()),
                "frames": Out(byte_stream()),
                "acknowledges": In(1),
                "acknowledged": In(8),
                "dealt_with": In(8),
                "owes": In(1),
                "synchronizes": In(1),
                "nonce": In(8 * NONCE_BYTES),
                "restart": Out(1),
                "enable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = Memory(shape=8, depth=1 << ceil_log2(MESSAGE_BYTES), init=[])
        length = Signal(range(buffer.depth))
        whole = Signal()  # the buffer holds a message
        number = Signal(8)
        fresh = Signal()  # it has not been sent yet
        done = Signal()  # it has been acknowledged
        waited = Signal(range(self._retransmit_cycles + 1))
        owed = Signal()
        patience = Signal(range(ACKNOWLEDGE_CYCLES + 1))
        asked = Signal()
        nonce = Signal.like(self.nonce)
        session = Signal.like(self.nonce)
        is_message = Signal()
        begin = Signal()
        finished = Signal()
        kind = Signal(8)

        self._fill(m, buffer, length, whole, number, fresh)
        self._send(m, buffer, length, number, nonce, kind, begin, is_message, finished)

        with m.If(self.acknowledges & whole & ~fresh & (self.acknowledged == number)):
            m.d.sync += done.eq(1)
        # Events during a frame wait for its end. An acknowledgement in the cycle in which the message is discarded was
        # for that message, too: the statements below come later and therefore win.
        idle = Signal(init=1)
        m.d.sync += self.restart.eq(0)
        with m.If(begin):
            m.d.sync += idle.eq(0)
        with m.If(finished):
            m.d.sync += idle.eq(1)
        with m.If(idle):
            with m.If(asked):
                m.d.comb += [kind.eq(FrameKind.SYNCHRONIZED), begin.eq(1)]
                m.d.sync += [asked.eq(0), session.eq(nonce), self.enable.eq(1)]
                m.d.sync += self.restart.eq((nonce != session) | ~self.enable)
            with m.Elif(done):
                m.d.sync += [done.eq(0), whole.eq(0), length.eq(0)]
            with m.Elif(whole & (fresh | (waited == self._retransmit_cycles))):
                m.d.comb += [kind.eq(FrameKind.MESSAGE), begin.eq(1)]
                m.d.sync += [fresh.eq(0), waited.eq(0), owed.eq(0)]
            with m.Elif(owed & (patience == ACKNOWLEDGE_CYCLES)):
                m.d.comb += [kind.eq(FrameKind.ACKNOWLEDGE), begin.eq(1)]
                m.d.sync += owed.eq(0)
            with m.If(whole & ~fresh & ~begin & (waited != self._retransmit_cycles)):
                m.d.sync += waited.eq(waited + 1)
        with m.If(owed & (patience != ACKNOWLEDGE_CYCLES)):
            m.d.sync += patience.eq(patience + 1)
        with m.If(self.owes):
            m.d.sync += [owed.eq(1), patience.eq(0)]
        with m.If(self.synchronizes):
            m.d.sync += [asked.eq(1), nonce.eq(self.nonce)]
        with m.If(self.restart):
            m.d.sync += [whole.eq(0), length.eq(0), number.eq(0), fresh.eq(0), done.eq(0), owed.eq(0)]
        return m

    def _fill(self, m: Module, buffer: Memory, length: Signal, whole: Signal, number: Signal, fresh: Signal) -> None:
        """Take a message into the buffer; ``length`` becomes the place of its last byte."""
        write = buffer.write_port()
        m.d.comb += [
            self.messages.ready.eq(~whole),
            write.addr.eq(length),
            write.data.eq(self.messages.p.data),
            write.en.eq(self.messages.valid & ~whole),
        ]
        with m.If(write.en):
            with m.If(self.messages.p.last):
                m.d.sync += [whole.eq(1), fresh.eq(1), number.eq(number + 1)]
            with m.Else():
                m.d.sync += length.eq(length + 1)

    def _send(
        self,
        m: Module,
        buffer: Memory,
        length: Signal,
        number: Signal,
        nonce: Signal,
        kind: Signal,
        begin: Signal,
        is_message: Signal,
        finished: Signal,
    ) -> None:
        """Send a frame: a header, and the buffer or the answer to a request to restart."""
        read = buffer.read_port()
        header = Signal(8 * _ANSWER_BYTES)
        rest = Signal(range(_ANSWER_BYTES))
        index = Signal.like(length)
        following = Signal.like(length)
        from_buffer = Signal()
        transfer = Signal()
        ends_header = Signal()
        m.d.comb += [
            transfer.eq(self.frames.valid & self.frames.ready),
            ends_header.eq(rest == 0),
            following.eq(Mux(transfer & from_buffer, index + 1, index)),
            read.addr.eq(following),
            self.frames.p.data.eq(Mux(from_buffer, read.data, header[:8])),
            self.frames.p.last.eq(Mux(from_buffer, index == length, ends_header & ~is_message)),
            finished.eq(transfer & self.frames.p.last),
        ]
        m.d.sync += index.eq(following)
        with m.If(transfer):
            m.d.sync += [header.eq(header >> 8), rest.eq(rest - 1), from_buffer.eq(from_buffer | ends_header)]
        with m.If(finished):
            m.d.sync += [self.frames.valid.eq(0), from_buffer.eq(0)]
        with m.If(begin):
            m.d.sync += [
                self.frames.valid.eq(1),
                is_message.eq(kind == FrameKind.MESSAGE),
                rest.eq(Mux(kind == FrameKind.SYNCHRONIZED, _ANSWER_BYTES - 1, HEADER_BYTES - 1)),
                header.eq(Cat(kind, number, self.dealt_with, nonce, Const(LINK_VERSION, 8))),
                index.eq(0),
            ]
