"""Scoreboard: which instructions in flight an instruction has to wait for."""

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.dispatch.instruction_ranges import source_width

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


class Scoreboard(wiring.Component):
    """Keeps for every instruction in flight what it touches and which older ones it still has to wait for.

    Each unit starts and finishes its instructions in order and has ``command_queue_depth`` slots. An instruction waits
    for those older instructions in other units that touch the same rows or bytes, if one of the two writes them.
    Instructions of one unit follow each other through the same pipeline and need not wait, but for one case: the
    activation unit may read the unified buffer before the rows of an older instruction have arrived there. Waiting
    is for older instructions only, so the oldest instruction of all can always go on.

    Members
    -------
    unit, access
        The next instruction's unit and what it touches, which is compared with all slots; held until it has its slot.
    allocate
        The bit of its unit: give it one, two cycles after the first in which it stood in ``access``, or later; not
        while its unit's bit of ``full`` is set.
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
                "allocate": In(units),
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
        remaining = Signal(width)
        waits = [Signal(width, name=f"waits_{unit.name.lower()}_{slot}") for unit, slot in slots]

        # No slot is taken while the instruction waits for its own, so what was compared once holds until then.
        m.d.comb += remaining.eq(conflicts & valid & ~finishing)

        allocated, oldest = {}, {}
        for unit in QueuedUnit:
            name = unit.name.lower()
            own = slice(unit.value * depth, (unit.value + 1) * depth)
            newest_slot = Signal(pointer, name=f"newest_{name}")
            next_slot = Signal(pointer, name=f"next_{name}")
            oldest_slot = Signal(pointer, name=f"oldest_{name}")
            to_start = Signal(range(depth + 1), name=f"to_start_{name}")
            allocates = self.allocate[unit.value]
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
            m.d.sync += conflicts[index].eq(self._conflict(m, unit, slot, is_next))
        return m

    def _conflict(self, m: Module, unit: QueuedUnit, slot: int, is_next: Value) -> Value:
        """Remember what the instruction in a slot touches, and compare it with ``access``."""
        held = Signal(access_layout(self.config), name=f"access_{unit.name.lower()}_{slot}", reset_less=True)
        with m.If(is_next):
            m.d.sync += held.eq(self.access)
        new = self.access

        def overlap(name: str, new_range: str, held_range: str) -> Signal:
            """Whether two ranges overlap, in a register: comparisons of addresses are long, and what follows from them
            is not short."""
            overlaps = Signal(name=f"{name}_overlaps_{unit.name.lower()}_{slot}", reset_less=True)
            m.d.sync += overlaps.eq(
                is_less(new[new_range], held[f"{held_range}_end"]) & is_less(held[held_range], new[f"{new_range}_end"])
            )
            return overlaps

        buffers = overlap("buffer", "unified_buffer", "unified_buffer")
        conflict = (new.writes | held.writes) & buffers
        if unit in _USES_ACCUMULATORS:
            both = new.uses_accumulators & held.uses_accumulators
            conflict |= both & overlap("source", "source", "source")
        if unit in _USES_HOST:
            is_host = (self.unit == QueuedUnit.HOST_READ) | (self.unit == QueuedUnit.HOST_WRITE)
            conflict |= is_host & overlap("host", "host", "host")
        if unit is QueuedUnit.ACTIVATION:
            conflict |= new.writes & (
                (held.reads_source & overlap("read_source", "unified_buffer", "source"))
                | (held.reads_operand & overlap("read_operand", "unified_buffer", "operand"))
            )

        # Only these two units write the unified buffer, and only the activation unit reads more than one range.
        reads_written = 0
        if unit in (QueuedUnit.HOST_READ, QueuedUnit.ACTIVATION):
            reads_written = held.writes & (
                (new.reads_source & overlap("written_source", "source", "unified_buffer"))
                | (new.reads_operand & overlap("written_operand", "operand", "unified_buffer"))
            )
        if unit is QueuedUnit.ACTIVATION:
            loads_written = held.writes & ~new.writes & buffers
            return Mux(self.unit == unit, reads_written | loads_written, conflict)
        return (self.unit != unit) & (conflict | reads_written)
