"""Write manager: a write port of the core on the write channels of an AXI interface."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.axi.channels import WriteChannelsSignature, address_layout, response_layout, write_data_layout
from openmxu.rtl.common.interfaces import WritePortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.stream_fifo import StreamFIFO

__all__ = ["WriteManager", "write_error_layout"]


def write_error_layout(address_width: int) -> data.StructLayout:
    """A burst that was answered with an error: the reply and the address of the burst."""
    return data.StructLayout({"resp": 2, "addr": address_width})


class WriteManager(wiring.Component):
    """Sends bursts and their data side by side, neither waiting for the other's ready. All outputs to the bus come from
    registers, and what comes from the bus goes into such.

    Parameters
    ----------
    address_width, data_bytes
        Of the port and of the bus.
    outstanding
        Bursts on their way at the same time, at most.

    Members
    -------
    port, offset
        What is written, and what is added to its addresses, a multiple of 4096.
    bus
        AXI.
    errors
        Bursts that were answered with an error; they count as done like others.
    flush
        While set, requests are forgotten, but for a burst that is offered already; bursts on their way get the rest of
        their beats, with no byte selected.
    idle
        Nothing is on its way.
    """

    def __init__(self, address_width: int, data_bytes: int, *, outstanding: int = 16) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._outstanding = outstanding
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
        burst = data.StructLayout({"last": 1, "addr": self._address_width})
        m.submodules.splitter = splitter = BurstSplitter(self._address_width, self._data_bytes)
        m.submodules.bursts = bursts = RegisterSlice(splitter.bursts.p.shape())
        m.submodules.addresses = addresses = RegisterSlice(address_layout(self._address_width))
        m.submodules.lengths = lengths = StreamFIFO(8, self._outstanding)
        m.submodules.on_their_way = on_their_way = StreamFIFO(burst, self._outstanding)
        m.submodules.oldest = oldest = RegisterSlice(burst)
        m.submodules.beats = beats = RegisterSlice(write_data_layout(self._data_bytes))
        m.submodules.replies = replies = RegisterSlice(response_layout())
        connect(m, flipped(self.port.request), splitter.requests)
        connect(m, splitter.bursts, bursts.input)
        connect(m, addresses.output, flipped(self.bus.aw))
        connect(m, beats.output, flipped(self.bus.w))
        connect(m, flipped(self.bus.b), replies.input)
        m.d.comb += [
            splitter.offset.eq(self.offset),
            splitter.flush.eq(self.flush),
            self.idle.eq(
                ~on_their_way.output.valid & ~oldest.output.valid & ~splitter.bursts.valid & ~bursts.output.valid
            ),
        ]

        # A burst goes to the three queues in the same cycle.
        parts = (addresses.input, lengths.input, on_their_way.input)
        for part in parts:
            others = [other.ready for other in parts if other is not part]
            m.d.comb += part.valid.eq(bursts.output.valid & others[0] & others[1])
        m.d.comb += [
            bursts.output.ready.eq(addresses.input.ready & lengths.input.ready & on_their_way.input.ready),
            addresses.input.p.addr.eq(bursts.output.p.addr),
            addresses.input.p.len.eq(bursts.output.p.len),
            lengths.input.payload.eq(bursts.output.p.len),
            on_their_way.input.p.addr.eq(bursts.output.p.addr),
            on_their_way.input.p.last.eq(bursts.output.p.last),
        ]
        m.submodules.length = length = RegisterSlice(lengths.output.p.shape())
        connect(m, lengths.output, length.input)
        self._send(m, length.output, beats.input)
        connect(m, on_their_way.output, oldest.input)
        self._finish(m, oldest.output, replies.output)
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

    def _finish(self, m: Module, burst: stream.Interface, replies: stream.Interface) -> None:
        """Tell the port when the last burst of a request has been answered."""
        answered = Signal()
        m.d.comb += [
            self.port.done.valid.eq(replies.valid & burst.valid & burst.p.last & ~self.flush),
            answered.eq(replies.valid & burst.valid & (~burst.p.last | self.port.done.ready | self.flush)),
            replies.ready.eq(answered),
            burst.ready.eq(answered),
        ]
        # Whoever looks at them may be far away.
        m.d.sync += [
            self.errors.valid.eq(answered & replies.p.resp[1]),
            self.errors.p.resp.eq(replies.p.resp),
            self.errors.p.addr.eq(burst.p.addr),
        ]
