"""AXI channels of the managers: handshakes are stable, and every burst is legal and within its request."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.shell.interfaces import PAGE_BYTES, block_beats
from tb.formal.bursts import QueuedBursts, is_legal, know_splitter, left_to_split
from tb.formal.proof import Proof

__all__ = ["Reading", "Writing", "WritingInOrder"]

_ADDRESS_WIDTH = 14
_DATA_BYTES = 8
_BEAT_BITS = ceil_log2(_DATA_BYTES)
_CLIENTS = ("program", "data")
_WHOLE = ("program",)


class _Addresses(Proof):
    """The bursts that splitters and queue make of requests.

    An arbitrary window of beats stands for the range of the requests: if all of them stay inside, so do all bursts.
    """

    def choose_window(self, m: Module) -> None:
        """Choose an arbitrary window."""
        width = _ADDRESS_WIDTH - _BEAT_BITS
        self._first, self._end = self.any(m, "window_first", width), self.any(m, "window_end", width + 1)
        self.assume(m, self._end <= 1 << width)  # addresses beyond the end of the address space would wrap around

    def follow(self, m: Module, requests: stream.Interface, offset: Value, splitter: str | None) -> None:
        """Assume that requests stay in the window, and add lemmas about their splitter. Without a splitter, each
        request is a single burst."""
        self.assume(m, offset[: ceil_log2(PAGE_BYTES)] == 0)
        beat, beats = (requests.p.address + offset)[_BEAT_BITS:_ADDRESS_WIDTH], requests.p.beats
        block = block_beats(_DATA_BYTES)
        self.assume(m, self.kept(m, requests))
        self.assume(m, ~requests.valid | ((beats != 0) & self._contains(beat, beats)))
        if splitter is None:
            last = (beat[: ceil_log2(block)] + beats - 1)[: len(beats)]
            self.assume(m, ~requests.valid | ((requests.p.address[:_BEAT_BITS] == 0) & (last < block)))
            return
        know_splitter(self, m, f"{splitter}.")
        base, place, blocks = (self.inside(f"{splitter}.{name}") for name in ("base", "place", "block"))
        now = Cat(place, (base + blocks)[: len(base)])
        with m.If(self.inside(f"{splitter}.active")):
            self.lemma(m, self._contains(now, left_to_split(self, f"{splitter}.")))

    def claim_addresses(self, m: Module, name: str, channel: stream.Interface) -> None:
        """Make the claims about an address channel."""
        burst = channel.p
        with m.If(channel.valid):
            legal = is_legal(burst.addr, burst.len, _DATA_BYTES)
            self.claim(m, f"{name}: a burst is aligned and does not cross 4 KiB", legal)
            self.claim(m, f"{name}: no burst reaches outside the window that requests stay in", self._is_inside(burst))
        self.claim(m, f"{name}: valid and payload stay until ready", self.kept(m, channel))
        self.reach(m, channel.valid & channel.ready & (burst.len != 0))

    def know_bursts(self, m: Module, depth: int) -> None:
        """Add lemmas about the queue: its flags match its pointers, and bursts not yet sent are legal and in the
        window."""
        queue = QueuedBursts(self, m, "queue.", depth, _ADDRESS_WIDTH, _DATA_BYTES)
        self.held = queue.held
        for place in range(depth):
            burst = queue.stored(place)
            with m.If(queue.is_unsent(place)):
                self.lemma(m, is_legal(queue.address(place), burst.len, _DATA_BYTES))
                self.lemma(m, self._contains(burst.beat, burst.len + 1))

    def _is_sent(self) -> Value:
        """Whether the oldest burst of the queue has been sent."""
        unsent = self.inside("queue.has_unsent") & (self.inside("queue.send") == self.inside("queue.consume"))
        return self.inside("queue.valid") & ~unsent

    def _contains(self, beat: Value, beats: Value) -> Value:
        return (beat >= self._first) & (beat + beats <= self._end)

    def _is_inside(self, burst: data.View) -> Value:
        return self._contains(burst.addr[_BEAT_BITS:], burst.len + 1)


class Reading(_Addresses):
    """The read manager with two clients."""

    def __init__(self) -> None:
        unit = partial(
            ReadManager, _ADDRESS_WIDTH, _DATA_BYTES, clients=_CLIENTS, whole=_WHOLE, outstanding=2, beats_ahead=64
        )
        super().__init__(unit, "ReadManager, two clients")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.choose_window(m)
        ports = [getattr(unit, f"client_{name}") for name in _CLIENTS]
        for name, port in zip(_CLIENTS, ports, strict=True):
            is_whole = name in _WHOLE
            offset = Const(0, _ADDRESS_WIDTH) if is_whole else getattr(unit, f"offset_{name}")
            self.follow(m, port.request, offset, None if is_whole else f"splitter_{name}")
        self.claim_addresses(m, "AR", unit.bus.ar)
        for port in ports:
            kept = self.kept(m, port.data)
            with m.If(~unit.flush):
                self.claim(m, "R: what a client is offered stays until it takes it, unless flushed", kept)
        self.claim(m, "R: a beat is offered to one client", ~(ports[0].data.valid & ports[1].data.valid))
        with m.If(unit.flush):
            self.claim(m, "R: flushed, no client is offered anything", ~(ports[0].data.valid | ports[1].data.valid))
        self.know_bursts(m, unit._outstanding)
        # A bus only answers bursts that have been sent.
        self.assume(m, ~self.inside("pop") | self._is_sent())
        self.claim(m, "idle only when nothing is on its way", ~unit.idle | (self.held == 0))


class Writing(_Addresses):
    """The write manager."""

    def __init__(self) -> None:
        super().__init__(lambda: WriteManager(_ADDRESS_WIDTH, _DATA_BYTES, outstanding=2), "WriteManager")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.choose_window(m)
        self.follow(m, unit.port.request, unit.offset, "splitter")
        self.claim_addresses(m, "AW", unit.bus.aw)
        self.claim(m, "W: valid and payload stay until ready", self.kept(m, unit.bus.w))
        self.know_bursts(m, unit._outstanding)
        self.assume(m, ~self.inside("pop") | self._is_sent())
        kept = self.kept(m, unit.port.done)
        with m.If(~unit.flush):
            self.claim(m, "B: a completion stays until it is taken, unless flushed", kept)
        with m.If(unit.flush):
            self.claim(m, "W: flushed, no data is taken", ~unit.port.data.ready)


class WritingInOrder(Proof):
    """Order of data, replies and completions of the write manager, starting from reset."""

    bound = 9
    reason = (
        "two requests of up to two beats, from reset to the last reply; queues and slices are proved by induction, and "
        "longer bursts differ in the count of beats only"
    )

    def __init__(self) -> None:
        super().__init__(lambda: WriteManager(_ADDRESS_WIDTH, _DATA_BYTES, outstanding=2), "WriteManager, order")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.assume(m, ~unit.flush)
        for interface in (unit.port.request, unit.port.data, unit.bus.b):
            self.assume(m, self.kept(m, interface))
        request = unit.port.request
        self.assume(m, (request.p.beats != 0) & (request.p.beats <= 2))

        # Lengths of the bursts on AW in order; the data of a burst may come before its address.
        places = 8
        lengths = Array(Signal(8, name=f"length_{place}") for place in range(places))
        bursts, complete, answered = Signal(range(places)), Signal(range(places)), Signal(range(places))
        beats = Signal(8)
        channel, written, reply = unit.bus.aw, unit.bus.w, unit.bus.b
        with m.If(channel.valid & channel.ready):
            m.d.sync += [lengths[bursts].eq(channel.p.len), bursts.eq(bursts + 1)]
        sends = written.valid & written.ready
        with m.If(sends):
            m.d.sync += [beats.eq(Mux(written.p.last, 0, beats + 1)), complete.eq(complete + written.p.last)]
        with m.If(sends & (complete < bursts)):
            self.claim(m, "W: last marks the last beat of each burst", written.p.last == (beats == lengths[complete]))
        # A bus only replies to bursts that it has received completely.
        self.assume(m, ~reply.valid | ((answered < bursts) & (answered < complete)))
        with m.If(reply.valid & reply.ready):
            m.d.sync += answered.eq(answered + 1)

        requested, done = Signal(range(places)), Signal(range(places))
        m.d.sync += requested.eq(requested + (request.valid & request.ready))
        m.d.sync += done.eq(done + (unit.port.done.valid & unit.port.done.ready))
        self.claim(m, "B: no request is done that was not made", ~unit.port.done.valid | (done < requested))
        self.claim(m, "B: no more requests are done than bursts are answered", done <= answered)
        self.claim(m, "idle means that all bursts are answered", ~unit.idle | (bursts == answered))
        self.reach(m, done == 2)
