"""Read manager: sends the requests of several clients on the read channels of one AXI interface."""

from collections.abc import Collection, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.axi.burst_queue import BurstQueue
from openmxu.rtl.axi.burst_splitter import BurstSplitter, split_burst_layout
from openmxu.rtl.axi.channels import ReadChannelsSignature, read_data_layout
from openmxu.rtl.common.interfaces import BEATS_WIDTH, ReadPortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.shell.interfaces import block_beats, read_error_layout

__all__ = ["ReadManager"]


class ReadManager(wiring.Component):
    """Requests bursts ahead and routes each beat to its client. All outputs to the bus are registered, and so are
    incoming beats.

    Beats come in the order of the requests, so that a client that does not take its beats blocks the other one: a
    client must only request what it can take without waiting for the other.

    Parameters
    ----------
    address_width, data_bytes
        Widths of the clients' ports and of the bus.
    clients
        Names, at most two, highest priority first.
    whole
        Clients whose requests are bursts already: not longer than
        :func:`~openmxu.rtl.shell.interfaces.block_beats` and not across a multiple of it.
    most_beats
        Largest number of beats of a request.
    outstanding
        Largest number of bursts in flight.
    beats_ahead
        A burst is requested while fewer beats than this are in flight, counted a cycle later: enough for a memory with
        a latency of that many cycles, and a bound on how long a client waits behind another.

    Members
    -------
    client_<name>, offset_<name>
        The port of each client; the offset added to its addresses, a multiple of 4096 (not for ``whole`` clients).
    bus
        AXI.
    errors
        Beats with an error response, a cycle later; the client receives them like others.
    flush
        While set, requests are discarded, except for bursts that are queued or offered, and incoming data is dropped.
    idle
        No burst is in flight.
    """

    def __init__(
        self,
        address_width: int,
        data_bytes: int,
        *,
        clients: Sequence[str],
        whole: Collection[str] = (),
        most_beats: int = (1 << BEATS_WIDTH) - 1,
        outstanding: int = 16,
        beats_ahead: int = 256,
    ) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._clients = tuple(clients)
        self._whole = frozenset(whole)
        if len(self._clients) > 2:
            raise ValueError(f"at most two clients, not {len(self._clients)}")
        self._outstanding = outstanding
        self._most_beats = most_beats
        self._beats_ahead = beats_ahead
        error = read_error_layout(address_width, len(self._clients))
        super().__init__(
            {
                **{f"client_{name}": In(ReadPortSignature(address_width, data_bytes)) for name in self._clients},
                **{f"offset_{name}": In(address_width) for name in self._clients if name not in self._whole},
                "bus": Out(ReadChannelsSignature(address_width, data_bytes)),
                "errors": Out(stream.Signature(error, always_ready=True)),
                "flush": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = BurstQueue(self._address_width, self._data_bytes, self._outstanding)
        m.submodules.beats = beats = RegisterSlice(read_data_layout(self._data_bytes))
        connect(m, queue.addresses, flipped(self.bus.ar))
        connect(m, flipped(self.bus.r), beats.input)
        arrives = Signal()
        m.d.comb += [
            arrives.eq(beats.output.valid & beats.output.ready),
            queue.pop.eq(arrives & beats.output.p.last),
            queue.look_up.eq(beats.output.valid & beats.output.p.resp[1]),
        ]
        waits = self._ask(m, queue, arrives)
        m.d.comb += self.idle.eq(~queue.valid & ~waits)
        self._deliver(m, queue, beats.output, arrives)
        return m

    def _bursts(self, m: Module, name: str) -> stream.Interface:
        """The bursts of a client."""
        requests = getattr(self, f"client_{name}").request
        if name in self._whole:
            bursts = stream.Signature(split_burst_layout(self._address_width)).create()
            m.d.comb += [
                bursts.valid.eq(requests.valid),
                *(bursts.p.addr.eq(requests.p.address), bursts.p.len.eq(requests.p.beats[:9] - 1), bursts.p.last.eq(1)),
                requests.ready.eq(bursts.ready | self.flush),
            ]
            return bursts
        m.submodules[f"splitter_{name}"] = splitter = BurstSplitter(
            self._address_width, self._data_bytes, self._most_beats
        )
        connect(m, flipped(requests), splitter.requests)
        m.d.comb += [splitter.offset.eq(getattr(self, f"offset_{name}")), splitter.flush.eq(self.flush)]
        return splitter.bursts

    def _ask(self, m: Module, queue: BurstQueue, arrives: Signal) -> Value:
        """Queue the burst of the first client that has one; returns whether there is one."""
        # Bursts and beats of the previous cycle are not counted yet, which keeps the adder off the critical path.
        beats_left = Signal(range(self._beats_ahead + 2 * block_beats(self._data_bytes)))
        length = Signal(8)
        asked, arrived = Signal(), Signal()
        may_ask = Signal()
        asks = Signal()
        goes_on = Signal()  # the burst of the previous cycle was not the last one of its request
        last = Signal()
        burst = queue.bursts.p
        m.d.comb += may_ask.eq(queue.bursts.ready & (beats_left < self._beats_ahead) & ~goes_on)
        waits, discarded = Const(0, 1), Const(0, 1)
        for number, name in enumerate(self._clients):
            bursts = self._bursts(m, name)
            m.d.comb += bursts.ready.eq(may_ask & ~waits)
            with m.If(bursts.valid & ~waits if number else bursts.valid):
                m.d.comb += [burst.addr.eq(bursts.p.addr), burst.len.eq(bursts.p.len), burst.tag.eq(number)]
                m.d.comb += last.eq(bursts.p.last)
            # A request that is discarded has its turn like others: who is next does not depend on `flush`.
            if name in self._whole:
                discarded = discarded | (bursts.valid & ~waits & self.flush)
            waits = waits | bursts.valid
        waits = waits & ~discarded
        m.d.comb += [asks.eq(waits & may_ask), queue.bursts.valid.eq(asks)]
        # One sum: a burst adds its length and one, a beat takes one away.
        change = Mux(asked, length, Mux(arrived, ~Const(0, len(beats_left)), 0))
        more = Cat(asked & ~arrived, change)
        m.d.sync += [
            *(asked.eq(asks), length.eq(burst.len), arrived.eq(arrives), goes_on.eq(asks & ~last)),
            beats_left.eq((Cat(1, beats_left) + more)[1:]),
        ]
        return waits

    def _deliver(self, m: Module, queue: BurstQueue, beats: stream.Interface, arrives: Signal) -> None:
        """Route the incoming beat to the client of its burst; a beat without a burst goes to no client."""
        for number, name in enumerate(self._clients):
            port = getattr(self, f"client_{name}").data
            m.d.comb += port.payload.eq(beats.p.data)
            with m.If((queue.tag == number) & queue.valid & ~self.flush):
                m.d.comb += port.valid.eq(beats.valid)
            with m.If(queue.tag == number):
                m.d.comb += beats.ready.eq(port.ready)
        with m.If(self.flush):
            m.d.comb += beats.ready.eq(1)
        # Registered, because the logic that handles errors may be far away on the chip.
        m.d.sync += [
            self.errors.valid.eq(arrives & beats.p.resp[1]),
            self.errors.p.client.eq(queue.tag),
            self.errors.p.resp.eq(beats.p.resp),
            self.errors.p.addr.eq(queue.address),
        ]
