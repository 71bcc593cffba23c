"""Memory reader: a read port of the core, served by messages."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import ceil_log2
from openmxu.arch.serial import DATA_BYTES, MessageKind, ReplyStatus
from openmxu.rtl.common.interfaces import BEATS_WIDTH, ReadPortSignature
from openmxu.rtl.serial.messages import byte_stream, memory_error_layout, message_layout
from openmxu.rtl.serial.short_message import ShortMessage

__all__ = ["MemoryReader"]


class MemoryReader(wiring.Component):
    """Requests the part of a request that fits into a message, passes its beats on, and requests the next part.

    It takes a reply as fast as the port takes data, so that a port must only request what it can take without waiting
    for other messages. Replies without a request are dropped.

    Parameters
    ----------
    address_width, data_bytes
        Widths of the port.
    kind
        Kind of the request messages; with ``None``, an input ``kind`` gives it while a request is in progress.

    Members
    -------
    port, offset
        Read port of the core, and the offset added to its addresses.
    requests, replies
        Messages.
    errors
        Replies that report an error, or have more or less data than requested; the port gets its beats nevertheless,
        the first missing one with the error or later.
    flush
        While set, requests are discarded, except for a message in flight; its reply is dropped.
    idle
        No request is in progress.
    """

    def __init__(self, address_width: int, data_bytes: int, kind: MessageKind | None) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._kind = kind
        super().__init__(
            ({} if kind is not None else {"kind": In(8)})
            | {
                "port": In(ReadPortSignature(address_width, data_bytes)),
                "offset": In(address_width),
                "requests": Out(byte_stream()),
                "replies": In(byte_stream()),
                "errors": Out(stream.Signature(memory_error_layout(address_width), always_ready=True)),
                "flush": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        most = DATA_BYTES // self._data_bytes
        m.submodules.question = question = ShortMessage(message_layout(MessageKind.READ_HOST))
        connect(m, question.output, flipped(self.requests))
        address = Signal(self._address_width, reset_less=True)
        beats = Signal(BEATS_WIDTH, reset_less=True)
        asked = Signal(range(most + 1))
        left = Signal.like(asked)
        m.d.comb += [
            asked.eq(Mux(beats < most, beats, most)),
            question.input.p.kind.eq(self.kind if self._kind is None else self._kind),
            question.input.p.address.eq(address),
            question.input.p.length.eq(asked << ceil_log2(self._data_bytes)),
        ]
        held = Signal(8 * self._data_bytes, reset_less=True)
        place = Signal(range(self._data_bytes))
        ended = Signal()  # the last byte of the reply has come
        failed = Signal()
        told = Signal()
        reply, port = self.replies, self.port
        # An error is reported with the first beat that it concerns, at the latest: no instruction of that is executed.
        m.d.sync += told.eq(failed)
        m.d.comb += [
            port.data.payload.eq(held),
            self.errors.p.addr.eq(address),
            self.errors.valid.eq(failed & ~told),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [port.request.ready.eq(1), reply.ready.eq(1), self.idle.eq(1)]
                m.d.sync += [address.eq(port.request.p.address + self.offset), beats.eq(port.request.p.beats)]
                with m.If(port.request.valid & ~self.flush):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += question.input.valid.eq(1)
                m.d.sync += [ended.eq(0), left.eq(asked), self.errors.p.resp.eq(ReplyStatus.ERROR)]
                with m.If(question.input.ready):
                    m.next = "AWAIT"
            with m.State("AWAIT"):
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid):
                    m.next = "STATUS"
                    with m.If(reply.p.last):
                        m.d.sync += [ended.eq(1), failed.eq(1)]
                        m.next = "GIVE"
            with m.State("STATUS"):
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid):
                    with m.If(reply.p.data != ReplyStatus.OKAY):
                        m.d.sync += failed.eq(1)
                        with m.If(reply.p.data == ReplyStatus.NO_MEMORY):
                            m.d.sync += self.errors.p.resp.eq(ReplyStatus.NO_MEMORY)
                    m.next = "TAKE"
                    with m.If(reply.p.last):
                        m.d.sync += [ended.eq(1), failed.eq(1)]
                        m.next = "GIVE"
            with m.State("TAKE"):
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid):
                    m.d.sync += [held.eq(Cat(held, reply.p.data)[8:]), place.eq(place + 1), ended.eq(reply.p.last)]
                    with m.If(place == self._data_bytes - 1):
                        m.next = "GIVE"
                    with m.Elif(reply.p.last):
                        m.d.sync += [failed.eq(1), place.eq(0)]
                        m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += port.data.valid.eq(~self.flush)
                with m.If(port.data.ready | self.flush):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left != 1):
                        # Without more data the port gets the last beat again.
                        with m.If(ended):
                            m.d.sync += failed.eq(1)
                        with m.Else():
                            m.next = "TAKE"
                    with m.Elif(ended):
                        m.next = "END"
                    with m.Else():
                        m.d.sync += failed.eq(1)
                        m.next = "DROP"
            with m.State("DROP"):
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid & reply.p.last):
                    m.next = "END"
            with m.State("END"):
                m.d.sync += [address.eq(address + DATA_BYTES), beats.eq(beats - most), failed.eq(0)]
                m.next = "ASK"
                with m.If((beats <= most) | self.flush):
                    m.next = "IDLE"
        return m
