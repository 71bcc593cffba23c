"""Write manager: connects a write port of the core to the write channels of an AXI interface."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.axi.burst_queue import BurstQueue
from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.axi.channels import WriteChannelsSignature, response_layout, write_data_layout
from openmxu.rtl.common.interfaces import BEATS_WIDTH, WritePortSignature
from openmxu.rtl.common.register_slice import RegisterSlice, StreamRegister
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.shell.interfaces import write_error_layout

__all__ = ["WriteManager"]


class WriteManager(wiring.Component):
    """Sends bursts and their data in parallel, neither waiting for the other's ready. All outputs to the bus are
    registered, and so are incoming replies.

    Parameters
    ----------
    address_width, data_bytes
        Widths of the port and of the bus.
    most_beats
        Largest number of beats of a request.
    outstanding
        Largest number of bursts in flight.

    Members
    -------
    port, offset
        Write port of the core, and the offset added to its addresses, a multiple of 4096.
    bus
        AXI.
    errors
        Bursts with an error reply; they count as done like others.
    flush
        While set, requests are discarded, except for a burst that is offered already; bursts in flight get the rest of
        their beats, with all strobes 0.
    idle
        No burst is in flight.
    """

    def __init__(
        self,
        address_width: int,
        data_bytes: int,
        *,
        most_beats: int = (1 << BEATS_WIDTH) - 1,
        outstanding: int = 16,
    ) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._outstanding = outstanding
        self._most_beats = most_beats
        super().__init__(
            {
                "port": In(WritePortSignature(address_width, data_bytes)),
                "offset": In(address_width),
                "bus": Out(WriteChannelsSignature(address_width, data_bytes)),
                "errors": Out(stream.Signature(write_error_layout(address_width), always_ready=True)),
                "flush": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.splitter = splitter = BurstSplitter(self._address_width, self._data_bytes, self._most_beats)
        m.submodules.queue = queue = BurstQueue(self._address_width, self._data_bytes, self._outstanding)
        m.submodules.lengths = lengths = StreamFIFO(8, self._outstanding, always_ready=True)
        m.submodules.length = length = StreamRegister(8)
        m.submodules.beats = beats = StreamRegister(write_data_layout(self._data_bytes))
        m.submodules.replies = replies = RegisterSlice(response_layout())
        connect(m, flipped(self.port.request), splitter.requests)
        connect(m, queue.addresses, flipped(self.bus.aw))
        connect(m, lengths.output, length.input)
        connect(m, beats.output, flipped(self.bus.w))
        connect(m, flipped(self.bus.b), replies.input)
        burst = splitter.bursts
        m.d.comb += [
            splitter.offset.eq(self.offset),
            splitter.flush.eq(self.flush),
            self.idle.eq(~queue.valid & ~burst.valid),
            # A burst goes to both queues in the same cycle. A length leaves before its burst, so there is room.
            burst.ready.eq(queue.bursts.ready),
            queue.bursts.valid.eq(burst.valid),
            *(queue.bursts.p.addr.eq(burst.p.addr), queue.bursts.p.len.eq(burst.p.len)),
            queue.bursts.p.tag.eq(burst.p.last),
            lengths.input.valid.eq(burst.valid & queue.bursts.ready),
            lengths.input.payload.eq(burst.p.len),
        ]
        self._send(m, length.output, beats.input)
        self._finish(m, queue, replies.output)
        return m

    def _send(self, m: Module, lengths: stream.Interface, beats: stream.Interface) -> None:
        """Send the beats of one burst after the other."""
        count = Signal(8)
        sent = Signal()
        m.d.comb += [
            beats.valid.eq(lengths.valid & (self.port.data.valid | self.flush)),
            self.port.data.ready.eq(lengths.valid & beats.ready & ~self.flush),
            beats.p.data.eq(self.port.data.p.data),
            beats.p.last.eq(count == lengths.payload),
            sent.eq(beats.valid & beats.ready),
            lengths.ready.eq(sent & beats.p.last),
        ]
        with m.If(~self.flush):
            m.d.comb += beats.p.strb.eq(self.port.data.p.strobe)
        with m.If(sent):
            m.d.sync += count.eq(count + 1)
            with m.If(beats.p.last):
                m.d.sync += count.eq(0)

    def _finish(self, m: Module, queue: BurstQueue, replies: stream.Interface) -> None:
        """Report to the port that the last burst of a request has been answered."""
        answered = Signal()
        m.d.comb += [
            self.port.done.valid.eq(replies.valid & queue.valid & queue.tag & ~self.flush),
            answered.eq(replies.valid & queue.valid & (~queue.tag | self.port.done.ready | self.flush)),
            replies.ready.eq(answered),
            queue.pop.eq(answered),
            queue.look_up.eq(replies.valid & replies.p.resp[1]),
        ]
        # Registered, because the logic that handles errors may be far away on the chip.
        m.d.sync += [
            self.errors.valid.eq(answered & replies.p.resp[1]),
            self.errors.p.resp.eq(replies.p.resp),
            self.errors.p.addr.eq(queue.address),
        ]
