"""The registers' side: every access is answered once, and the ring is read where it is, nowhere else."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import ShellKind
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.shell.program_fetcher import ProgramFetcher
from openmxu.rtl.shell.register_file import RegisterFile
from tb.formal.proof import Proof
from tb.formal.streams import know_queue

__all__ = ["Accesses", "Fetching", "RegisterAnswers"]


def _transfers(interface) -> Value:
    return interface.valid & interface.ready


class Accesses(Proof):
    """The AXI4-Lite subordinate."""

    def __init__(self) -> None:
        super().__init__(lambda: LiteSubordinate(4), "LiteSubordinate")

    def state(self, m: Module) -> None:
        unit, bus = self.unit, self.unit.bus
        for interface in (bus.aw, bus.w, bus.ar, unit.responses):
            self.assume(m, self.kept(m, interface))
        writes, reads = Signal(range(3)), Signal(range(3))
        m.d.sync += writes.eq(writes + _transfers(bus.aw) - _transfers(bus.b))
        m.d.sync += reads.eq(reads + _transfers(bus.ar) - _transfers(bus.r))
        for name, interface in (("B", bus.b), ("R", bus.r), ("requests", unit.requests)):
            self.claim(m, f"{name}: valid and payload stay until ready", self.kept(m, interface))
        self.claim(m, "AW and W are taken together", _transfers(bus.aw) == _transfers(bus.w))
        self.claim(m, "one access at a time", writes + reads <= 1)
        self.claim(m, "B: a reply for each write, and no other", ~bus.b.valid | (writes == 1))
        self.claim(m, "R: an answer for each read, and no other", ~bus.r.valid | (reads == 1))
        # What each state holds.
        request = unit.requests
        self.lemma(m, (bus.aw.ready == self.is_in("TAKE_WRITE")) & (bus.w.ready == bus.aw.ready))
        self.lemma(m, ~bus.aw.ready | (bus.aw.valid & bus.w.valid))
        self.lemma(m, bus.ar.ready == self.is_in("TAKE_READ"))
        self.lemma(m, ~bus.ar.ready | bus.ar.valid)
        self.lemma(m, request.valid == (self.is_in("WRITE") | self.is_in("READ")))
        self.lemma(m, bus.b.valid == self.is_in("REPLY"))
        self.lemma(m, bus.r.valid == self.is_in("ANSWER"))
        self.lemma(m, (writes == 1) == (self.is_in("WRITE") | self.is_in("REPLY")))
        self.lemma(m, (reads == 1) == (self.is_in("READ") | self.is_in("WAIT") | self.is_in("ANSWER")))
        self.reach(m, _transfers(bus.b) & (bus.b.p.resp == 0))
        self.reach(m, _transfers(bus.b) & (bus.b.p.resp == 2))
        self.reach(m, _transfers(bus.r))


class RegisterAnswers(Proof):
    """The register file."""

    def __init__(self) -> None:
        super().__init__(lambda: RegisterFile(Config(size=2, activation_lanes=1), ShellKind.AXI), "RegisterFile")

    def state(self, m: Module) -> None:
        unit = self.unit
        self.assume(m, self.kept(m, unit.requests))
        self.assume(m, self.kept(m, unit.management_response, unit.core_resets))
        open_reads = Signal(range(3))
        m.d.sync += open_reads.eq(
            open_reads + (_transfers(unit.requests) & ~unit.requests.p.write) - _transfers(unit.responses)
        )
        self.claim(m, "responses: valid and payload stay until ready", self.kept(m, unit.responses))
        kept = self.kept(m, unit.management, unit.core_resets)
        self.claim(
            m, "management: valid and payload stay until ready, unless the core is reset", kept | unit.core_resets
        )
        self.claim(
            m, "one answer for each read, and no other", (open_reads <= 1) & (~unit.responses.valid | (open_reads == 1))
        )
        # What each state holds.
        request = unit.requests
        self.lemma(m, (open_reads == 1) == (self.is_in("AWAIT_CORE") | self.is_in("GIVE_UP") | self.is_in("ANSWER")))
        self.lemma(m, unit.responses.valid == self.is_in("ANSWER"))
        for reading in ("ASK_CORE", "CHOOSE", "CHOOSE_GROUP", "READ_OWN"):
            self.lemma(m, ~self.is_in(reading) | (request.valid & ~request.p.write))
        for writing in ("WRITE_CORE", "WRITE_OWN"):
            self.lemma(m, ~self.is_in(writing) | (request.valid & request.p.write))

        before = Signal()
        base, size = Signal.like(unit.ring_base), Signal.like(unit.ring_size)
        m.d.sync += [before.eq(unit.ring_busy), base.eq(unit.ring_base), size.eq(unit.ring_size)]
        with m.If(before):
            self.claim(m, "the ring stands still while it is read", (base == unit.ring_base) & (size == unit.ring_size))
        was_off, was_reset = Signal(), Signal()
        m.d.sync += [was_off.eq(~unit.control.enable), was_reset.eq(unit.core_resets)]
        self.claim(m, "the ring's head is 0 while it is off", ~was_off | (unit.ring_head == 0))
        self.claim(m, "a reset of the core switches the ring off", ~was_reset | ~unit.control.enable)
        self.reach(m, _transfers(unit.responses))


_DEPTH, _CHUNK = 4, 2


class Fetching(Proof):
    """The program fetcher, for one width of the bus."""

    def __init__(self, data_bytes: int) -> None:
        self._data_bytes = data_bytes
        unit = partial(ProgramFetcher, 12, data_bytes, depth=_DEPTH, chunk=_CHUNK)
        super().__init__(unit, f"ProgramFetcher, {8 * data_bytes} bits")

    def state(self, m: Module) -> None:
        unit = self.unit
        request = unit.memory.request
        self.assume(m, self.kept(m, unit.memory.data))
        # The driver's part: a ring of at least two instructions that stands still while it is read.
        was_busy = Signal()
        base, size = Signal.like(unit.base), Signal.like(unit.size)
        m.d.sync += [was_busy.eq(unit.enable | unit.fetching), base.eq(unit.base), size.eq(unit.size)]
        self.assume(m, ~was_busy | ((base == unit.base) & (size == unit.size)))
        self.assume(m, unit.size >= 2)
        self.assume(m, unit.base + unit.size <= 1 << len(unit.base))

        place, asked, word = self.inside("place"), self.inside("asked"), self.inside("word")
        state, available = self.inside("fsm_state"), self.inside("available")
        looks, counts, asks, steps = (self.is_in(name) for name in ("LOOK", "COUNT", "ASK", "STEP"))
        self.lemma(m, state <= 4)
        target = self.inside("target")
        self.lemma(m, ~self.is_in("MEASURE") | ((target > place) & (target <= unit.size)))
        self.lemma(m, self.inside("stopping") | ((place < unit.size) & (unit.tail < unit.size)))
        self.lemma(m, ~counts | ((available != 0) & (place + available <= unit.size)))
        self.lemma(m, ~asks | ((asked != 0) & (place + asked <= unit.size) & (word == unit.base + place)))
        self.lemma(m, ~steps | ((self.inside("end") == place + asked) & (place + asked <= unit.size)))
        self.lemma(m, self.inside("has_asked") == steps)
        until_end = self.inside("until_end_left")
        self.lemma(m, self.inside("stopping") | (until_end + unit.tail == unit.size))
        self.lemma(m, self.inside("stopping") | (self.inside("until_end_last") == (until_end == 1)))
        self.lemma(m, looks | unit.fetching)
        self._count_room(m, looks, asks, asked)

        def in_ring(payload: data.View) -> Value:
            first, bits = payload.address, ceil_log2(WORD_BYTES)
            end = first + (payload.beats << ceil_log2(self._data_bytes))
            ring, ring_end = unit.base << bits, (unit.base + unit.size) << bits
            return (first + self._data_bytes > ring) & (end < ring_end + self._data_bytes)

        self.claim(m, "every beat that is asked for has a byte of the ring", ~request.valid | in_ring(request.p))
        spare, is_empty = self.inside("request.spare"), self.inside("request.has_room")
        self.lemma(m, is_empty | in_ring(data.View(request.p.shape(), spare)))
        self.lemma(m, is_empty | request.valid)
        self.lemma(m, ~request.valid | ~looks | self.inside("holds"))
        offered, shows = unit.instructions.valid, self.inside("queue.r_rdy")
        self.lemma(m, ~offered | (shows & (self.inside("shown") == self.inside("queue.r_data"))))
        self.lemma(m, ~self.inside("taken") | (shows & ~offered))
        self.claim(m, "requests stay until they are taken", self.kept(m, request))
        self.claim(m, "instructions stay until they are taken", self.kept(m, unit.instructions))
        self.claim(m, "what was asked for is always taken", ~self.inside("arrives") | self.inside("queue.w_rdy"))
        self.reach(m, unit.instructions.valid & unit.instructions.ready)
        self.reach(m, request.valid & request.ready & (place != 0))

    def _count_room(self, m: Module, looks: Value, asks: Value, asked: Value) -> None:
        """What is in the queue, what is to come and what there is room for make up the depth."""
        runs, first = self.inside("runs.level"), self.inside("runs.consume")
        layout = self.unit._places.runs.p.shape()
        rows = [
            data.View(layout, self.stored("runs.storage", (first + place)[: len(first)], layout.size)).rows
            for place in range(_DEPTH // _CHUNK)
        ]
        has_next, is_alone = self.inside("places.next.has_first"), self.inside("places.next.has_room")
        following = [
            (has, data.View(layout, self.inside(f"places.next.{name}")).rows)
            for name, has in (("first", has_next), ("spare", ~is_alone))
        ]
        walks, left = self.unit._places.places.valid, self.inside("places.rows_left")
        last = self.unit._places.places.p.last
        room = self.inside("room")
        request_sent, run_sent = self.inside("request_sent"), self.inside("run_sent")
        level, has_output = self.inside("queue.level"), self.inside("queue.r_rdy")
        queued = sum((Mux(place < runs, number, 0) for place, number in enumerate(rows)), Const(0))
        to_come = queued + sum((Mux(has, number, 0) for has, number in following), Mux(walks, left, 0))
        to_come += self.inside("arrives")
        self.lemma(m, is_alone | has_next)
        for has, number in following:
            self.lemma(m, ~has | ((number != 0) & (number <= _CHUNK)))
        know_queue(self, m, "runs.", len(rows))
        self.lemma(
            m,
            (level + to_come + room + self.inside("left"))[:8]
            == (_DEPTH + Mux(run_sent | self.inside("has_asked"), asked, 0))[:8],
        )
        for place, number in enumerate(rows):
            self.lemma(m, (place >= runs) | ((number != 0) & (number <= _CHUNK)))
        self.lemma(m, ~walks | ((left != 0) & (left <= _CHUNK) & (last == (left == 1))))
        self.lemma(m, looks | (room >= _CHUNK))
        self.lemma(m, asks | ~(request_sent | run_sent))
        self.lemma(m, ~(asks | self.inside("has_asked")) | (asked <= _CHUNK))
        self.lemma(m, has_output | (self.inside("queue.inner_level") <= 1))
