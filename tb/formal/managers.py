"""The managers' channels: handshakes are stable, every burst is legal and within what was asked for."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, stream

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.burst_splitter import block_beats, split_burst_layout
from openmxu.rtl.axi.channels import PAGE_BYTES, address_layout
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.write_manager import WriteManager
from tb.formal.bursts import is_legal
from tb.formal.proof import Proof
from tb.formal.streams import know_queue

__all__ = ["Reading", "Writing", "WritingInOrder"]

_ADDRESS_WIDTH = 14
_DATA_BYTES = 8
_BEAT_BITS = ceil_log2(_DATA_BYTES)
_CLIENTS = ("program", "data")


class _Addresses(Proof):
    """What splitters and a register slice make of requests.

    A window of beats, any, stands for what requests may touch: if all requests stay inside, so do all bursts.
    """

    def choose_window(self, m: Module) -> None:
        """Choose the window."""
        width = _ADDRESS_WIDTH - _BEAT_BITS
        self._first, self._end = self.any(m, "window_first", width), self.any(m, "window_end", width + 1)
        self.assume(m, self._end <= 1 << width)  # addresses behind the end of the address space would wrap

    def follow(self, m: Module, requests: stream.Interface, offset: Value, splitter: str, bursts: str) -> None:
        """Assume that requests stay in the window, and follow them through their splitter and the slice behind it."""
        self.assume(m, offset[: ceil_log2(PAGE_BYTES)] == 0)
        beat = (requests.p.address + offset)[_BEAT_BITS:_ADDRESS_WIDTH]
        self.assume(m, self.kept(m, requests))
        self.assume(m, ~requests.valid | ((requests.p.beats != 0) & self._contains(beat, requests.p.beats)))
        left = self.inside(f"{splitter}.beats_left")
        now = self.inside(f"{splitter}.bursts__payload")[_BEAT_BITS:_ADDRESS_WIDTH]
        room, block = self.inside(f"{splitter}.room"), block_beats(_DATA_BYTES)
        offers, fits, steps = (self.inside(f"{splitter}.{name}") for name in ("offers", "fits", "steps"))
        with m.If(~self.inside(f"{splitter}.idle")):
            self.lemma(m, (left != 0) & self._contains(now, left))
            self.lemma(m, room == block - now[: ceil_log2(block)])
            self.lemma(m, offers + steps == 1)
            self.lemma(m, steps | (fits == (left <= room)))
        with m.Else():
            self.lemma(m, ~offers & ~steps)
        self._follow_slice(m, bursts, split_burst_layout(_ADDRESS_WIDTH))

    def claim_addresses(self, m: Module, name: str, channel: stream.Interface) -> None:
        """Make the claims about an address channel."""
        burst = channel.p
        with m.If(channel.valid):
            legal = is_legal(burst.addr, burst.len, _DATA_BYTES)
            self.claim(m, f"{name}: a burst is aligned and does not cross 4 KiB", legal)
            self.claim(m, f"{name}: no burst reaches outside the window that requests stay in", self._is_inside(burst))
        self.claim(m, f"{name}: valid and payload stay until ready", self.kept(m, channel))
        self._follow_slice(m, "addresses", address_layout(_ADDRESS_WIDTH))
        self.reach(m, channel.valid & channel.ready & (burst.len != 0))

    def _follow_slice(self, m: Module, name: str, layout: data.StructLayout) -> None:
        """What a register slice holds is a legal burst in the window."""
        held = {"first": self.inside(f"{name}.has_first"), "spare": ~self.inside(f"{name}.has_room")}
        self.lemma(m, held["first"] | ~held["spare"])
        for place, is_held in held.items():
            burst = data.View(layout, self.inside(f"{name}.{place}"))
            with m.If(is_held):
                self.lemma(m, is_legal(burst.addr, burst.len, _DATA_BYTES) & self._is_inside(burst))

    def _contains(self, beat: Value, beats: Value) -> Value:
        return (beat >= self._first) & (beat + beats <= self._end)

    def _is_inside(self, burst: data.View) -> Value:
        return self._contains(burst.addr[_BEAT_BITS:], burst.len + 1)


class Reading(_Addresses):
    """The read manager with two clients."""

    def __init__(self) -> None:
        unit = partial(ReadManager, _ADDRESS_WIDTH, _DATA_BYTES, clients=_CLIENTS, outstanding=2, beats_ahead=64)
        super().__init__(unit, "ReadManager, two clients")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.choose_window(m)
        ports = [getattr(unit, f"client_{name}") for name in _CLIENTS]
        for name, port in zip(_CLIENTS, ports, strict=True):
            self.follow(m, port.request, getattr(unit, f"offset_{name}"), f"splitter_{name}", f"bursts_{name}")
        self.claim_addresses(m, "AR", unit.bus.ar)
        for port in ports:
            kept = self.kept(m, port.data)
            with m.If(~unit.flush):
                self.claim(m, "R: what a client is offered stays until it takes it, unless flushed", kept)
        self.claim(m, "R: a beat is offered to one client", ~(ports[0].data.valid & ports[1].data.valid))
        with m.If(unit.flush):
            self.claim(m, "R: flushed, no client is offered anything", ~(ports[0].data.valid | ports[1].data.valid))
        level = self.inside("on_their_way.level")
        know_queue(self, m, "on_their_way.", unit._outstanding)
        self.claim(m, "idle only when nothing is on its way", ~unit.idle | (level == 0))


class Writing(_Addresses):
    """The write manager."""

    def __init__(self) -> None:
        super().__init__(lambda: WriteManager(_ADDRESS_WIDTH, _DATA_BYTES, outstanding=2), "WriteManager")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.choose_window(m)
        self.follow(m, unit.port.request, unit.offset, "splitter", "bursts")
        self.claim_addresses(m, "AW", unit.bus.aw)
        self.claim(m, "W: valid and payload stay until ready", self.kept(m, unit.bus.w))
        know_queue(self, m, "on_their_way.", unit._outstanding)
        kept = self.kept(m, unit.port.done)
        with m.If(~unit.flush):
            self.claim(m, "B: what is told stays told until it is taken, unless flushed", kept)
        with m.If(unit.flush):
            self.claim(m, "W: flushed, no data is taken", ~unit.port.data.ready)


class WritingInOrder(Proof):
    """Data, replies and completions of the write manager, from reset on."""

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

        # The lengths of the bursts on AW, as they come; data may be ahead of them.
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
        # A bus replies to what it has all of.
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
