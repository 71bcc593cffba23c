"""The scoreboard is sound: no instruction starts while an older one that it conflicts with is in flight."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.dispatch.scoreboard import QueuedUnit, Scoreboard, access_layout
from tb.formal.proof import Proof

__all__ = ["Soundness"]

CONFIG = Config(
    size=2,
    activation_lanes=1,
    unified_buffer_rows=4,
    unified_buffer_banks=1,
    accumulator_rows=4,
    parameter_sets=1,
    command_queue_depth=2,
    host_address_width=16,
)
"""Addresses are narrow, because they are only compared: more bits would show nothing new."""

_YES = Const(1)
_ALIGNED = ceil_log2(CONFIG.host_alignment)
_DEPTH = CONFIG.command_queue_depth
_SLOTS = [(unit, slot) for unit in QueuedUnit for slot in range(_DEPTH)]


def _meet(first: Value, end: Value, other: Value, other_end: Value) -> Value:
    """Whether two ranges overlap."""
    return (first < other_end) & (other < end)


def _reads(access: data.View, first: Value, end: Value) -> Value:
    """Whether an instruction reads any rows of a range of the unified buffer."""
    return (
        (~access.writes & _meet(access.unified_buffer, access.unified_buffer_end, first, end))
        | (access.reads_source & _meet(access.source, access.source_end, first, end))
        | (access.reads_operand & _meet(access.operand, access.operand_end, first, end))
    )


def _writes(access: data.View, first: Value, end: Value) -> Value:
    """Whether an instruction writes any rows of a range of the unified buffer."""
    return access.writes & _meet(access.unified_buffer, access.unified_buffer_end, first, end)


def _conflict(unit: Value, access: data.View, other_unit: Value, other: data.View) -> Value:
    """Whether two instructions touch the same bytes and one of them writes; the second one is the younger.

    Each unit executes its instructions in order, so those of one unit need not wait for each other. The exception is
    the activation unit, which reads ahead of its own results.
    """
    rows = (access.unified_buffer, access.unified_buffer_end)
    other_rows = (other.unified_buffer, other.unified_buffer_end)
    after_write = access.writes & _reads(other, *rows)
    buffer = after_write | (other.writes & _reads(access, *other_rows)) | (access.writes & _writes(other, *rows))
    both = access.uses_accumulators & other.uses_accumulators
    sums = both & _meet(access.source, access.source_end, other.source, other.source_end)
    transfers = ((unit == QueuedUnit.HOST_READ) & (other_unit == QueuedUnit.HOST_WRITE)) | (
        (unit == QueuedUnit.HOST_WRITE) & (other_unit == QueuedUnit.HOST_READ)
    )
    host = transfers & _meet(access.host, access.host_end, other.host, other.host_end)
    return Mux(unit == other_unit, (unit == QueuedUnit.ACTIVATION) & after_write, buffer | sums | host)


def _is_legal(unit: Value, access: data.View) -> Value:
    """Whether the flags are those that the decoder gives to an instruction: a host read writes rows and a host write
    reads them, the matrix unit uses sums, and Activate reads sums or rows and writes rows. A load of parameters only
    reads rows. Ranges of host memory are aligned."""
    flags = Cat(access.writes, access.uses_accumulators, access.reads_source, access.reads_operand)
    activates = access.writes & (access.uses_accumulators ^ access.reads_source)
    legal = {
        QueuedUnit.HOST_READ: flags == 0b0001,
        QueuedUnit.HOST_WRITE: flags == 0b0000,
        QueuedUnit.MATRIX: flags == 0b0010,
        QueuedUnit.ACTIVATION: (flags == 0) | activates,
    }
    is_aligned = ~(access.host[:_ALIGNED] | access.host_end[:_ALIGNED]).any()
    return Array(legal[queued] for queued in QueuedUnit)[unit] & is_aligned


class Soundness(Proof):
    """The scoreboard, for an arbitrary pair of its slots."""

    depth = 3

    def __init__(self) -> None:
        super().__init__(lambda: Scoreboard(CONFIG), "Scoreboard")

    def state(self, m: Module) -> None:
        older, younger = self.any(m, "older", 3), self.any(m, "younger", 3)
        self.assume(m, older != younger)
        running = Array(self._keep_order(m, queued) for queued in QueuedUnit)
        self._follow_protocol(m)
        enters = self.inside("enters")

        active, age = self.inside("active"), self.inside("age")

        # The two slots according to the protocol, independent of the unit's registers.
        touches = {}
        held = {}
        for name, slot in (("older", older), ("younger", younger)):
            touches[name] = Signal(access_layout(CONFIG), name=f"{name}_access")
            held[name] = Signal(name=f"{name}_in_flight")
            with m.If(enters.bit_select(slot[1:], 1) & (self._of("newest", slot) == slot[0])):
                m.d.sync += [touches[name].eq(self._new), held[name].eq(1)]
            with m.Elif(self._finishes(slot)):
                m.d.sync += held[name].eq(0)
            used = self._of("in_flight", slot)
            self.lemma(m, held[name] == (used[1] | (used[0] & self._of("oldest", slot).bit_select(slot[0], 1))))
            with m.If(held[name]):
                self.lemma(m, _is_legal(slot[1:], touches[name]))
                self.lemma(m, self._keeps(slot, touches[name]))
            with m.If(self._is_new(slot) & self._has_room):
                self.lemma(m, self._keeps(slot, self._new))

        follows, conflict, started = (Signal(name=name) for name in ("follows", "conflict", "started"))
        entered = enters.bit_select(younger[1:], 1) & (self._of("newest", younger) == younger[0])
        conflicts = _conflict(older[1:], touches["older"], younger[1:], self._new)
        with m.If(entered):
            m.d.sync += [
                follows.eq(held["older"] & ~self._finishes(older)),
                conflict.eq(conflicts),
                started.eq(0),
            ]
        with m.Elif(self._finishes(older) | self._finishes(younger)):
            m.d.sync += follows.eq(0)
        starts = Signal()
        m.d.comb += starts.eq(
            self.unit.started.bit_select(younger[1:], 1) & self._of("next", younger).bit_select(younger[0], 1)
        )
        with m.If(starts):
            m.d.sync += started.eq(1)

        in_the_way = held["older"] & held["younger"] & follows & conflict
        with m.If(starts):
            self.claim(m, "nothing starts while something older that it conflicts with is in flight", ~in_the_way)
        waits = self._waits(younger, older)
        with m.If(held["younger"] & waits):
            self.claim(
                m,
                "what waits waits for something older in flight, so that the oldest can always go on",
                held["older"] & follows,
            )
        self.lemma(m, ~follows | (held["older"] & held["younger"]))
        self.lemma(m, ~(in_the_way & ~started) | waits)
        with m.If(held["younger"]):
            place = younger[0] ^ self._of("oldest", younger)[1]
            self.lemma(m, started == (place < running[younger[1:]]))

        # The case that the younger slot is that of the instruction being compared.
        is_new = self._is_new(younger)
        # An instruction that has finished is taken out a cycle later.
        is_found = (self._of("found", older) & ~self._of("finished", older)).bit_select(older[0], 1)
        self.lemma(m, ~(waits | is_found) | held["older"])
        is_older = held["older"] & is_new
        place = self._of("newest", older) ^ 1 ^ older[0]
        found = self._of("hits", older, "_0").bit_select(older[0], 1)
        to_come = active & (age <= place)
        self.lemma(m, ~(is_older & conflicts) | is_found | to_come | found)
        self.reach(m, in_the_way & ~started & (older[1:] == QueuedUnit.HOST_WRITE))
        self.reach(m, starts & conflict & (older[1:] == younger[1:]))

    def _follow_protocol(self, m: Module) -> None:
        """Assume that the dispatcher obeys the protocol and instructions are legal; add lemmas about comparisons."""
        unit, access, number = self.unit, self.unit.access, Value.cast(self.unit.unit)
        active, pending = self.inside("active"), self.inside("pending")
        # The instruction compared last.
        self._new = Signal(access_layout(CONFIG), name="new_access")
        self._new_unit = Signal(2, name="new_unit")
        comparing, behind, free = Signal(name="comparing"), Signal(range(4), name="behind"), Signal(name="free")
        idle = Signal(range(5), name="idle")
        unit_before = Signal(2, name="unit_before")
        names = [name for name, field in access_layout(CONFIG) if field.width == 1]
        flags = Cat(access[name] for name in names)
        flags_before = Signal(len(flags), name="flags_before")
        self._has_new = comparing | pending.any()

        is_announced = (number == unit_before) & (flags == flags_before)
        may_be_new = (~comparing & (behind == 0)) | (idle == 4)
        self.assume(m, ~unit.compare | (may_be_new & _is_legal(number, access) & is_announced))
        new_flags = Cat(self._new[name] for name in names)
        is_kept = comparing | (behind == 1)
        self.assume(m, ~is_kept | unit.compare | (Value.cast(access) == Value.cast(self._new)))
        is_held = (flags == new_flags) & (number == self._new_unit)
        self.assume(m, ~(is_kept | (behind == 2)) | unit.compare | is_held)
        # The contract requires one more cycle, which only a comparison of four steps needs.
        allocates = comparing & ~unit.compare & free
        self.assume(m, (unit.allocate == 0) | ((unit.allocate == 1 << number) & allocates))
        self.assume(m, (unit.started & ~unit.startable) == 0)

        m.d.sync += [
            unit_before.eq(number),
            flags_before.eq(flags),
            idle.eq(Mux(unit.busy.any() | unit.allocate.any() | unit.compare, 0, Mux(idle == 4, 4, idle + 1))),
            free.eq((unit.compare | comparing) & ~unit.full.bit_select(number, 1)),
            behind.eq(Mux(unit.allocate.any(), 1, Mux(behind == 0, 0, behind + 1))),
        ]
        with m.If(unit.compare):
            m.d.sync += [self._new.eq(access), self._new_unit.eq(number), comparing.eq(1)]
        with m.Elif(unit.allocate.any()):
            m.d.sync += comparing.eq(0)

        age = self.inside("age")
        # Whether there was a step in the last cycle, and its age.
        compares, age_before = Signal(name="compares"), Signal.like(age, name="age_before")
        m.d.sync += [compares.eq(unit.compare | active), age_before.eq(age)]
        self.lemma(m, ~active | comparing)
        self.lemma(m, ~compares | comparing | (behind == 1))
        self.lemma(m, active == (age == 1))
        self.lemma(m, ~comparing | ((unit_before == self._new_unit) & (flags_before == new_flags)))
        # Units that the announced instruction may conflict with.
        had = dict(zip(names, flags_before, strict=True))
        is_host_read = unit_before == QueuedUnit.HOST_READ
        activates = (unit_before == QueuedUnit.ACTIVATION) & had["writes"]
        reads_rows = had["reads_source"] | had["reads_operand"] | ~had["writes"]
        matters = {
            QueuedUnit.HOST_READ: ~is_host_read,
            QueuedUnit.HOST_WRITE: is_host_read | activates,
            QueuedUnit.MATRIX: is_host_read | activates,
            QueuedUnit.ACTIVATION: (unit_before != QueuedUnit.ACTIVATION) | reads_rows,
        }
        # The slots read next: those of the youngest instructions, or of the ones before them.
        slots = {}
        for queued in QueuedUnit:
            name = queued.name.lower()
            slot, newest = self.inside(f"slot_{name}_0"), self.inside(f"newest_{name}")
            slots[queued] = slot
            # A step also advances to the next slot if nothing is left to compare.
            moves = (behind == 1) | (behind == 2) | (compares & ~active)
            self.lemma(m, moves | (slot == (newest - age - 1)[0]))
            self.lemma(m, ~compares | (self.inside(f"matters_{name}") == matters[queued]))
            is_there = compares & matters[queued] & self.inside(f"in_flight_{name}").bit_select(age_before, 1)
            place = (newest - age_before - 1)[0]
            left = self.inside(f"compared_{name}_0") & ~self.inside(f"finished_{name}")
            self.lemma(m, left == Mux(is_there, 1 << place, 0))
        for memory, queued in (("rows_host_read", 0), ("rows_host_write", 1), ("rows_matrix", 2), ("activations", 3)):
            self.lemma(m, self.inside(f"address_{memory}_0") == slots[QueuedUnit(queued)])
        for memory, one, other in (
            ("sources", QueuedUnit.MATRIX, QueuedUnit.ACTIVATION),
            ("host", QueuedUnit.HOST_READ, QueuedUnit.HOST_WRITE),
        ):
            is_other = unit_before == other
            address = Cat(Mux(is_other, slots[one], slots[other]), ~is_other)
            self.lemma(m, self.inside(f"address_{memory}_0") == address)
        self.lemma(m, (pending == 0) | ((pending == 1 << self._new_unit) & (behind == 1) & ~active))
        self.lemma(m, ~comparing | (behind == 0))
        self.lemma(m, ~(behind == 0) | comparing | ~compares)
        # A comparison is over when the instruction leaves, and when nothing has been in flight for some cycles.
        in_flight = Array(self.inside(f"in_flight_{queued.name.lower()}") for queued in QueuedUnit)
        self._has_room = (free & comparing) | pending.any()
        self.lemma(m, ~self._has_room | ~in_flight[self._new_unit][1])
        self.lemma(m, (idle == 0) | ((pending == 0) & (Cat(in_flight) == 0)))
        self.lemma(m, ~active | (idle == 0))
        self.lemma(m, ~compares | (idle < 2))
        self.lemma(m, ~self._has_new | _is_legal(self._new_unit, self._new))

    def _keeps(self, slot: Value, access: data.View) -> Value:
        """Whether the contents stored for a slot are the ranges of its instruction."""
        place, unit = slot[0], slot[1:]

        def kept(name: str, address: Value, *members: str) -> Value:
            content = Cat(access[member] for member in members)
            return self.stored(f"held_{name}", address, len(content)) == content

        rows = ("unified_buffer", "unified_buffer_end")
        source = kept("sources", Cat(place, unit == QueuedUnit.ACTIVATION), "source", "source_end")
        transfer = Cat(access.host[_ALIGNED:], access.host_end[_ALIGNED:])
        is_write = unit == QueuedUnit.HOST_WRITE
        host = self.stored("held_host", Cat(place, is_write), len(transfer)) == transfer
        flags = ("writes", "uses_accumulators", "reads_source", "reads_operand")
        kept_by = {
            QueuedUnit.HOST_READ: kept("rows_host_read", place, *rows) & host,
            QueuedUnit.HOST_WRITE: kept("rows_host_write", place, *rows) & host,
            QueuedUnit.MATRIX: kept("rows_matrix", place, *rows) & source,
            QueuedUnit.ACTIVATION: kept("activations", place, *rows, "operand", "operand_end", *flags) & source,
        }
        return Array(kept_by[queued] for queued in QueuedUnit)[unit]

    def _keep_order(self, m: Module, unit: QueuedUnit) -> Signal:
        """Add lemmas about the pointers of a unit, whose slots are used in turn, and assume that it only completes
        started instructions. Returns the number of its started instructions in flight."""
        name = unit.name.lower()
        used, waiting, newest, following, oldest = (
            self.inside(f"{part}_{name}") for part in ("in_flight", "waiting", "newest", "next", "oldest")
        )
        count, running = (
            Signal(range(_DEPTH + 1), name=f"count_{name}"),
            Signal(range(_DEPTH + 1), name=f"running_{name}"),
        )
        m.d.comb += [count.eq(used[0] + used[1]), running.eq(count - (waiting[0] + waiting[1]))]
        self.lemma(m, (used != 2) & (waiting != 2) & ((waiting & ~used) == 0))
        self.lemma(m, oldest[0] != oldest[1])
        self.lemma(m, following == Mux(running[0], oldest.rotate_left(1), oldest))
        self.lemma(m, newest == oldest[1] ^ count[0])
        self.assume(m, ~self.unit.done[unit.value] | (running != 0))
        return running

    def _is_new(self, slot: Value) -> Value:
        """Whether a slot is that of the instruction being compared."""
        return self._has_new & (self._new_unit == slot[1:]) & (self._of("newest", slot) == slot[0])

    def _of(self, name: str, slot: Value, suffix: str = "") -> Value:
        """The signal ``name`` of the unit to which an arbitrary slot belongs."""
        return Array(self.inside(f"{name}_{unit.name.lower()}{suffix}") for unit in QueuedUnit)[slot[1:]]

    def _waits(self, younger: Value, older: Value) -> Value:
        """Whether the instruction in one slot waits for that in the other."""

        def bit(unit: QueuedUnit, slot: int, other: QueuedUnit, place: int) -> Value:
            try:
                return self.inside(f"waits_{unit.name.lower()}_{slot}_{other.name.lower()}")[place]
            except KeyError:
                return Const(0)

        return Array(Array(bit(*first, *second) for second in _SLOTS) for first in _SLOTS)[younger][older]

    def _finishes(self, slot: Value) -> Value:
        return self._of("finishing", slot).bit_select(slot[0], 1)
