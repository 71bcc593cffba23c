"""Scoreboard: which instructions in flight an instruction has to wait for."""

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.instruction_ranges import source_width

__all__ = ["QueuedUnit", "Scoreboard", "access_layout"]


class QueuedUnit(enum.Enum, shape=2):
    """The units whose instructions the scoreboard tracks."""

    HOST_READ = 0
    HOST_WRITE = 1
    MATRIX = 2
    ACTIVATION = 3


_USES_HOST = (QueuedUnit.HOST_READ, QueuedUnit.HOST_WRITE)
_USES_ACCUMULATORS = (QueuedUnit.MATRIX, QueuedUnit.ACTIVATION)


def access_layout(config: Config) -> data.StructLayout:
    """The rows and bytes that a legal instruction touches; ends are exclusive.

    ``writes`` tells whether its ``unified_buffer`` rows are written rather than read. ``source`` rows are those of
    accumulators if ``uses_accumulators``, and read from the unified buffer if ``reads_source``. ``operand`` rows are
    read if ``reads_operand``. Host ranges count for host transfers only.
    """
    row = config.unified_buffer_address_width
    return data.StructLayout(
        {
            "unified_buffer": row,
            "unified_buffer_end": row + 1,
            "writes": 1,
            "source": source_width(config),
            "source_end": source_width(config) + 1,
            "uses_accumulators": 1,
            "reads_source": 1,
            "operand": row,
            "operand_end": row + 1,
            "reads_operand": 1,
            "host": config.host_address_width,
            "host_end": config.host_address_width + 1,
        }
    )


def _overlap(first: Value, end: Value, other_first: Value, other_end: Value) -> Value:
    return (first < other_end) & (other_first < end)


class Scoreboard(wiring.Component):
    """Keeps for every instruction in flight what it touches and which older ones it still has to wait for.

    Each unit starts and finishes its instructions in order and has ``command_queue_depth`` slots. An instruction waits
    for those older instructions in other units that touch the same rows or bytes, if one of the two writes them.
    Instructions of one unit follow each other through the same pipeline and need not wait, but for one case: the
    activation unit may read the unified buffer before the rows of an older instruction have arrived there. Waiting
    is for older instructions only, so the oldest instruction of all can always go on.

    Members
    -------
    check, unit, access
        Compare ``access`` of an instruction for ``unit`` with all slots; the result is kept for ``allocate``.
    allocate
        Give the instruction checked last a slot; not while its unit's bit of ``full`` is set.
    full, busy, startable
        One bit for each :class:`QueuedUnit`: no slot is free; a slot is used; the next instruction waits for nothing.
    started, done
        One bit for each unit: the next instruction starts; the oldest one has finished.
    matrix_waits
        For which units the matrix unit's next instruction waits.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        units = len(QueuedUnit)
        super().__init__(
            {
                "check": In(1),
                "allocate": In(1),
                "unit": In(QueuedUnit),
                "access": In(access_layout(config)),
                "full": Out(units),
                "busy": Out(units),
                "startable": Out(units),
                "started": In(units),
                "done": In(units),
                "matrix_waits": Out(units),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self.config.command_queue_depth
        slots = [(unit, slot) for unit in QueuedUnit for slot in range(depth)]
        width = len(slots)
        pointer = range(depth)

        valid = Signal(width)
        finishing = Signal(width)
        conflicts = Signal(width)
        pending = Signal(width)
        remaining = Signal(width)
        waits = [Signal(width, name=f"waits_{unit.name.lower()}_{slot}") for unit, slot in slots]

        m.d.comb += remaining.eq(pending & ~finishing)
        with m.If(self.check):
            m.d.sync += pending.eq(conflicts & ~finishing)
        with m.Else():
            m.d.sync += pending.eq(remaining)

        allocated, oldest = {}, {}
        for unit in QueuedUnit:
            name = unit.name.lower()
            own = slice(unit.value * depth, (unit.value + 1) * depth)
            newest_slot = Signal(pointer, name=f"newest_{name}")
            next_slot = Signal(pointer, name=f"next_{name}")
            oldest_slot = Signal(pointer, name=f"oldest_{name}")
            to_start = Signal(range(depth + 1), name=f"to_start_{name}")
            allocates = Signal(name=f"allocates_{name}")
            m.d.comb += allocates.eq(self.allocate & (self.unit == unit))
            allocated[unit], oldest[unit] = (allocates, newest_slot), oldest_slot

            with m.If(allocates):
                m.d.sync += newest_slot.eq(newest_slot + 1)
            with m.If(self.started[unit.value]):
                m.d.sync += next_slot.eq(next_slot + 1)
            with m.If(self.done[unit.value]):
                m.d.sync += oldest_slot.eq(oldest_slot + 1)
            m.d.sync += to_start.eq(to_start + allocates - self.started[unit.value])

            next_waits = Array(waits[own])[next_slot]
            m.d.comb += [
                self.full[unit.value].eq(valid[own].all()),
                self.busy[unit.value].eq(valid[own].any()),
                self.startable[unit.value].eq((to_start != 0) & (next_waits == 0)),
            ]
            if unit is QueuedUnit.MATRIX:
                for other in QueuedUnit:
                    part = next_waits.word_select(other.value, depth)
                    m.d.comb += self.matrix_waits[other.value].eq((to_start != 0) & part.any())

        for index, (unit, slot) in enumerate(slots):
            allocates, newest_slot = allocated[unit]
            taken = Signal(name=f"taken_{unit.name.lower()}_{slot}")
            m.d.comb += [
                taken.eq(allocates & (newest_slot == slot)),
                finishing[index].eq(self.done[unit.value] & (oldest[unit] == slot)),
            ]
            with m.If(taken):
                m.d.sync += [valid[index].eq(1), waits[index].eq(remaining)]
            with m.Else():
                m.d.sync += waits[index].eq(waits[index] & ~finishing)
                with m.If(finishing[index]):
                    m.d.sync += valid[index].eq(0)
            # What an instruction touches is written to its slot before it is known whether it gets there: only `valid`
            # has to wait for that.
            is_next = ~valid[index] & (newest_slot == slot) & (self.unit == unit)
            conflict = self._conflict(m, unit, slot, is_next)
            m.d.comb += conflicts[index].eq(valid[index] & conflict)
        return m

    def _conflict(self, m: Module, unit: QueuedUnit, slot: int, is_next: Value) -> Value:
        """Remember what the instruction in a slot touches, and compare it with ``access``."""
        held = Signal(access_layout(self.config), name=f"access_{unit.name.lower()}_{slot}", reset_less=True)
        with m.If(is_next):
            m.d.sync += held.eq(self.access)
        new = self.access
        overlap = _overlap(new.unified_buffer, new.unified_buffer_end, held.unified_buffer, held.unified_buffer_end)
        conflict = (new.writes | held.writes) & overlap
        if unit in _USES_ACCUMULATORS:
            both = new.uses_accumulators & held.uses_accumulators
            conflict |= both & _overlap(new.source, new.source_end, held.source, held.source_end)
        if unit in _USES_HOST:
            is_host = (self.unit == QueuedUnit.HOST_READ) | (self.unit == QueuedUnit.HOST_WRITE)
            conflict |= is_host & _overlap(new.host, new.host_end, held.host, held.host_end)
        if unit is QueuedUnit.ACTIVATION:
            conflict |= new.writes & _reads(held, new.unified_buffer, new.unified_buffer_end)

        # Only these two units write the unified buffer, and only the activation unit reads more than one range.
        reads_written = 0
        if unit in (QueuedUnit.HOST_READ, QueuedUnit.ACTIVATION):
            reads_written = held.writes & _reads(new, held.unified_buffer, held.unified_buffer_end)
        if unit is QueuedUnit.ACTIVATION:
            loads_written = held.writes & ~new.writes & overlap
            return Mux(self.unit == unit, reads_written | loads_written, conflict)
        return (self.unit != unit) & (conflict | reads_written)


def _reads(access: data.View, first: Value, end: Value) -> Value:
    """Whether the source or the operand of ``access`` meets unified buffer rows."""
    return (access.reads_source & _overlap(access.source, access.source_end, first, end)) | (
        access.reads_operand & _overlap(access.operand, access.operand_end, first, end)
    )
