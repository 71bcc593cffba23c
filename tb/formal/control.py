"""Every register access is answered once, and instruction fetches stay within the ring."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import ShellKind
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.shell.interfaces import block_beats
from openmxu.rtl.shell.program_fetcher import ProgramFetcher
from openmxu.rtl.shell.register_file import RegisterFile
from tb.formal.proof import Proof

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
        # Invariants of each state.
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
        # Invariants of each state.
        request = unit.requests
        self.lemma(m, (open_reads == 1) == self.is_in("ANSWER"))
        self.lemma(m, unit.responses.valid == self.is_in("ANSWER"))
        for reading in ("ASK_CORE", "AWAIT_CORE", "CHOOSE", "CHOOSE_GROUP", "READ_OWN"):
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
    """The program fetcher, for one bus width."""

    def __init__(self, data_bytes: int) -> None:
        self._data_bytes = data_bytes
        unit = partial(ProgramFetcher, 12, data_bytes, depth=_DEPTH, chunk=_CHUNK)
        super().__init__(unit, f"ProgramFetcher, {8 * data_bytes} bits")

    def state(self, m: Module) -> None:
        unit = self.unit
        request = unit.memory.request
        self.assume(m, self.kept(m, unit.memory.data))
        # The driver's obligation: a ring of at least two instructions that does not change while it is read.
        was_busy = Signal()
        base, size = Signal.like(unit.base), Signal.like(unit.size)
        m.d.sync += [was_busy.eq(unit.enable | unit.fetching), base.eq(unit.base), size.eq(unit.size)]
        self.assume(m, ~was_busy | ((base == unit.base) & (size == unit.size)))
        self.assume(m, unit.size >= 2)
        self.assume(m, unit.base + unit.size <= 1 << len(unit.base))

        place, asked, word, end = (self.inside(name) for name in ("place", "asked", "word", "end"))
        stopping, has_new, at_end = (self.inside(name) for name in ("stopping", "has_new", "at_end"))
        looks, cleared, compared = (self.is_in(name) for name in ("LOOK", "CLEARED", "COMPARED"))
        asks, receives = self.is_in("MEASURE") | self.is_in("ASK"), self.is_in("RECEIVE")
        left = self.inside("left")
        bits = ceil_log2(_CHUNK)
        here, group = place[:bits], place[bits:]
        # The head one and two cycles ago, and whether the place changed one and two cycles ago.
        head, earlier_head = Signal.like(unit.head), Signal.like(unit.head)
        changed, has_changed = Signal(), Signal()
        m.d.sync += [
            *(head.eq(unit.head), earlier_head.eq(head)),
            *(changed.eq(self.inside("clears") | self.inside("advances")), has_changed.eq(changed)),
        ]
        self.lemma(m, self.inside("fsm_state") <= 5)
        self.lemma(m, stopping | (place <= unit.size))
        self.lemma(m, stopping | (unit.tail < unit.size))
        self.lemma(m, ~cleared | (place == 0))
        self.lemma(m, ~compared | (~changed & (place == 0)))
        self.lemma(m, ~looks | stopping | ~(changed | has_changed))
        self.lemma(m, ~asks | ~(changed | has_changed))
        self.lemma(m, ~receives | ~changed | (left != 0))
        with m.If(~stopping):
            self.lemma(m, self.inside("head_here") == head[:bits])
            self.lemma(m, self.inside("is_in_ring") == (head < unit.size))
            with m.If(~changed):
                self.lemma(m, self.inside("head_equal").all() == (head[bits:] == group))
                self.lemma(m, self.inside("size_equal").all() == (unit.size[bits:] == group))
            with m.If(~changed & ~has_changed):
                is_near = (earlier_head[bits:] == group) & (earlier_head[:bits] > here)
                is_end_near = unit.size[bits:] == group
                self.lemma(m, at_end == (place == unit.size))
                self.lemma(m, has_new == ((earlier_head < unit.size) & (earlier_head != place)))
                expected = Mux(is_near, earlier_head[:bits], Mux(is_end_near, unit.size[:bits], _CHUNK))
                self.lemma(m, end == expected)
        with m.If(asks | (~stopping & ~changed)):
            self.lemma(m, word == (unit.base + place)[: len(word)])
        with m.If(asks):
            self.lemma(m, (asked != 0) & (asked <= _CHUNK) & (place + asked <= unit.size))
        self._count_room(m, looks | cleared | compared, asks, left)

        def in_ring(payload: data.View) -> Value:
            first, bits = payload.address, ceil_log2(WORD_BYTES)
            end = first + (payload.beats << ceil_log2(self._data_bytes))
            ring, ring_end = unit.base << bits, (unit.base + unit.size) << bits
            return (first + self._data_bytes > ring) & (end < ring_end + self._data_bytes)

        block = block_beats(self._data_bytes)
        beat = request.p.address[ceil_log2(self._data_bytes) :][: ceil_log2(block)]
        is_burst = beat + request.p.beats <= block
        self.claim(m, "every beat that is asked for has a byte of the ring", ~request.valid | in_ring(request.p))
        self.claim(m, "a request does not cross a multiple of the longest burst", ~request.valid | is_burst)
        self.claim(m, "requests stay until they are taken", self.kept(m, request))
        self.claim(m, "instructions stay until they are taken", self.kept(m, unit.instructions))
        self.reach(m, unit.instructions.valid & unit.instructions.ready)
        self.reach(m, request.valid & request.ready & (place != 0))

    def _count_room(self, m: Module, looks: Value, asks: Value, left: Value) -> None:
        """Queued and outstanding instructions fit into the queue, and instructions are assembled one at a time."""
        part_bytes = min(WORD_BYTES, self._data_bytes)
        parts = WORD_BYTES // part_bytes
        produce, consume, arrives = (self.inside(name) for name in ("produce", "consume", "arrives"))
        level = (produce - consume)[: len(produce)]
        places = _DEPTH * parts
        seen = (self.inside("visible") - consume)[: len(produce)]
        self.lemma(m, (seen == level) | (seen + 1 == level))
        self.claim(m, "what was asked for is always taken", level + arrives + left <= places)
        self.lemma(m, ~(looks | asks) | (left == 0))
        self.lemma(m, self.inside("comes_more") == (left != 0))
        has_room = self.inside("has_room")
        free = level + arrives <= places - _CHUNK * parts
        self.lemma(m, ~(asks | (looks & has_room)) | free)
        leaves, ends, comes, is_last = (self.inside(name) for name in ("leaves", "ends", "comes", "is_last"))
        waits, is_full = (self.inside(name) for name in ("waits", "is_full"))
        half, whole, valid = leaves & ends, comes & is_last, self.unit.instructions.valid
        self.lemma(m, is_full == (half | whole | waits | valid))
        self.lemma(m, half + whole + waits + valid <= 1)
        self.lemma(m, ~(whole | waits | valid) | ~leaves)
        self.lemma(m, ~(waits | valid) | ~comes)
