"""The scoreboard is sound: nothing starts while something older that it conflicts with is in flight."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from openmxu.arch.config import Config
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
"""Addresses are only compared, so that few bits of them show what many would."""

_DEPTH = CONFIG.command_queue_depth
_SLOTS = [(unit, slot) for unit in QueuedUnit for slot in range(_DEPTH)]


def _meet(first: Value, end: Value, other: Value, other_end: Value) -> Value:
    """Whether two ranges have something in common."""
    return (first < other_end) & (other < end)


def _reads(access: data.View, first: Value, end: Value) -> Value:
    """Whether an instruction reads any of these unified buffer rows."""
    return (
        (~access.writes & _meet(access.unified_buffer, access.unified_buffer_end, first, end))
        | (access.reads_source & _meet(access.source, access.source_end, first, end))
        | (access.reads_operand & _meet(access.operand, access.operand_end, first, end))
    )


def _writes(access: data.View, first: Value, end: Value) -> Value:
    """Whether it writes any."""
    return access.writes & _meet(access.unified_buffer, access.unified_buffer_end, first, end)


def _conflict(unit: Value, access: data.View, other_unit: Value, other: data.View) -> Value:
    """Whether two instructions touch the same bytes and one of them writes; the second one is the younger.

    Instructions of one unit go through it in order, and need not wait for each other; but the activation unit reads
    ahead of its own results.
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
    """What the decoder says of instructions: a host read writes rows and a host write reads them, the matrix unit uses
    sums, and Activate reads sums or rows and writes rows. A load of parameters only reads its rows."""
    flags = Cat(access.writes, access.uses_accumulators, access.reads_source, access.reads_operand)
    activates = access.writes & (access.uses_accumulators ^ access.reads_source)
    legal = {
        QueuedUnit.HOST_READ: flags == 0b0001,
        QueuedUnit.HOST_WRITE: flags == 0b0000,
        QueuedUnit.MATRIX: flags == 0b0010,
        QueuedUnit.ACTIVATION: (flags == 0) | activates,
    }
    return Array(legal[queued] for queued in QueuedUnit)[unit]


class Soundness(Proof):
    """The scoreboard, for any two of its slots."""

    depth = 3

    def __init__(self) -> None:
        super().__init__(lambda: Scoreboard(CONFIG), "Scoreboard")

    def state(self, m: Module) -> None:
        unit = self.unit
        self._follow_protocol(m)
        older, younger = self.any(m, "older", 3), self.any(m, "younger", 3)
        self.assume(m, older != younger)
        valid, conflicts = self.inside("valid"), self.inside("conflicts")
        accesses = Array(self._access(index) for index in range(len(_SLOTS)))
        waits = Array(self.inside(f"waits_{unit_of.name.lower()}_{slot}") for unit_of, slot in _SLOTS)
        running = Array(self._keep_order(m, queued) for queued in QueuedUnit)

        # The two slots as the protocol says, not as the unit has it.
        touches = {}
        held = {}
        for name, slot in (("older", older), ("younger", younger)):
            touches[name] = Signal(access_layout(CONFIG), name=f"{name}_access")
            held[name] = Signal(name=f"{name}_in_flight")
            allocated = self._allocates(slot)
            with m.If(allocated):
                m.d.sync += [touches[name].eq(unit.access), held[name].eq(1)]
            with m.Elif(self._finishes(slot)):
                m.d.sync += held[name].eq(0)
            self.lemma(m, held[name] == valid.bit_select(slot, 1))
            with m.If(held[name]):
                self.lemma(m, Value.cast(touches[name]) == accesses[slot])
                self.lemma(m, _is_legal(slot[1:], touches[name]))
        follows, conflict, started = Signal(), Signal(), Signal()
        conflict_now = Signal()
        m.d.comb += conflict_now.eq(_conflict(older[1:], touches["older"], younger[1:], unit.access))
        with m.If(self._allocates(younger)):
            m.d.sync += [
                follows.eq(held["older"] & ~self._finishes(older)),
                conflict.eq(conflict_now),
                started.eq(0),
            ]
        with m.Elif(self._finishes(older) | self._finishes(younger) | self._allocates(older)):
            m.d.sync += follows.eq(0)
        starts = Signal()
        m.d.comb += starts.eq(self._starts(younger))
        with m.If(starts):
            m.d.sync += started.eq(1)

        in_the_way = held["older"] & held["younger"] & follows & conflict
        with m.If(starts):
            self.claim(m, "nothing starts while something older that it conflicts with is in flight", ~in_the_way)
        waits_for = Signal()
        m.d.comb += waits_for.eq(waits[younger].bit_select(older, 1))
        with m.If(held["younger"] & waits_for):
            self.claim(
                m,
                "what waits waits for something older in flight, so that the oldest can always go on",
                held["older"] & follows,
            )
        self.lemma(m, ~follows | (held["older"] & held["younger"]))
        self.lemma(m, ~(in_the_way & ~started) | waits_for)
        with m.If(held["younger"]):
            place = younger[0] ^ self._pointer("oldest", younger)
            self.lemma(m, started == (place < running[younger[1:]]))
        with m.If(self._checked & held["older"]):
            compared = _conflict(older[1:], touches["older"], Value.cast(unit.unit), unit.access)
            self.lemma(m, ~compared | conflicts.bit_select(older, 1))
        self.reach(m, in_the_way & ~started & (older[1:] == QueuedUnit.HOST_WRITE))
        self.reach(m, starts & conflict & (older[1:] == younger[1:]))

    def _follow_protocol(self, m: Module) -> None:
        """How the command queues use the scoreboard, and what the decoder says of legal instructions."""
        unit, access = self.unit, self.unit.access
        self._checked = Signal(name="checked")
        allocated_before = Signal()
        steady, was_steady = Signal(), Signal()
        before = Signal(Value.cast(access).shape(), name="access_before")
        unit_before = Signal(2, name="unit_before")
        m.d.sync += [
            before.eq(Value.cast(access)),
            unit_before.eq(Value.cast(unit.unit)),
            allocated_before.eq(unit.allocate.any()),
            was_steady.eq(steady),
        ]
        m.d.comb += [
            steady.eq((Value.cast(access) == before) & (Value.cast(unit.unit) == unit_before) & ~allocated_before),
            self._checked.eq(steady & was_steady),
        ]
        full = unit.full.bit_select(Value.cast(unit.unit), 1)
        self.assume(m, (unit.allocate == 0) | ((unit.allocate == 1 << Value.cast(unit.unit)) & self._checked & ~full))
        self.assume(m, (unit.started & ~unit.startable) == 0)

        self.assume(m, _is_legal(Value.cast(unit.unit), access))

    def _keep_order(self, m: Module, unit: QueuedUnit) -> Signal:
        """A unit's slots are used in turn: lemmas about its pointers, and what it may say is done. Returns how many of
        its instructions have started."""
        name = unit.name.lower()
        newest, following, oldest, to_start = (
            self.inside(f"{part}_{name}") for part in ("newest", "next", "oldest", "to_start")
        )
        used = self.inside("valid")[unit.value * _DEPTH : (unit.value + 1) * _DEPTH]
        count, running = (
            Signal(range(_DEPTH + 1), name=f"count_{name}"),
            Signal(range(_DEPTH + 1), name=f"running_{name}"),
        )
        m.d.comb += [count.eq(used[0] + used[1]), running.eq(count - to_start)]
        self.lemma(m, to_start <= count)
        self.lemma(m, newest == oldest ^ count[0])
        self.lemma(m, following == oldest ^ running[0])
        self.lemma(m, (count != 1) | used.bit_select(oldest, 1))
        self.assume(m, ~self.unit.done[unit.value] | (running != 0))
        return running

    def _access(self, index: int) -> Signal:
        unit, slot = _SLOTS[index]
        return self.inside(f"access_{unit.name.lower()}_{slot}")

    def _pointer(self, name: str, slot: Value) -> Value:
        """A pointer of the unit of a slot, any."""
        return Array(self.inside(f"{name}_{unit.name.lower()}") for unit in QueuedUnit)[slot[1:]]

    def _allocates(self, slot: Value) -> Value:
        mine = self.unit.allocate.any() & (Value.cast(self.unit.unit) == slot[1:])
        return mine & (self._pointer("newest", slot) == slot[0])

    def _starts(self, slot: Value) -> Value:
        return self.unit.started.bit_select(slot[1:], 1) & (self._pointer("next", slot) == slot[0])

    def _finishes(self, slot: Value) -> Value:
        return self.unit.done.bit_select(slot[1:], 1) & (self._pointer("oldest", slot) == slot[0])
