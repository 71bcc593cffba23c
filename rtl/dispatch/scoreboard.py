"""Scoreboard: finds the instructions in flight that an instruction has to wait for."""

import functools
import operator

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.dispatch.check.instruction_ranges import source_width
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["QueuedUnit", "Scoreboard", "access_layout", "ways"]


class QueuedUnit(enum.Enum, shape=2):
    """The units whose instructions the scoreboard tracks."""

    HOST_READ = 0
    HOST_WRITE = 1
    MATRIX = 2
    ACTIVATION = 3


_HOST_READ, _HOST_WRITE, _MATRIX, _ACTIVATION = QueuedUnit

_WAITS_FOR = {
    _HOST_READ: (_HOST_WRITE, _MATRIX, _ACTIVATION),
    _HOST_WRITE: (_HOST_READ, _ACTIVATION),
    _MATRIX: (_HOST_READ, _ACTIVATION),
    _ACTIVATION: (_HOST_READ, _HOST_WRITE, _MATRIX, _ACTIVATION),
}
"""The units that each unit's instructions may have to wait for."""


_STEPS = 4
"""Cycles of a comparison: as many as pass anyway until a checked instruction may start."""


def access_layout(config: Config) -> data.StructLayout:
    """The rows and bytes that a legal instruction touches; ends are exclusive.

    ``writes`` is set if its ``unified_buffer`` rows are written rather than read. ``source`` rows are accumulator rows
    if ``uses_accumulators``, and are read from the unified buffer if ``reads_source``. ``operand`` rows are read if
    ``reads_operand``. Host ranges count for host transfers only.
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


_ROWS = ("unified_buffer", "unified_buffer_end")
_HELD = {
    "rows_host_read": ((_HOST_READ,), _ROWS),
    "rows_host_write": ((_HOST_WRITE,), _ROWS),
    "rows_matrix": ((_MATRIX,), _ROWS),
    "activations": (
        (_ACTIVATION,),
        (*_ROWS, "operand", "operand_end", "writes", "uses_accumulators", "reads_source", "reads_operand"),
    ),
    "sources": ((_MATRIX, _ACTIVATION), ("source", "source_end")),
    "host": ((_HOST_READ, _HOST_WRITE), ("host", "host_end")),
}
"""For each memory, the units whose instructions it holds, and the members of ``access`` that it holds. With two units,
an instruction of the second one is compared with those of the first one, and any other with those of the second one."""


def ways(depth: int) -> int:
    """Instructions of each unit that a new one is compared with in a cycle, so that four cycles are enough for all."""
    return -(-depth // _STEPS)


class _Unit:
    """The instructions of one unit: their number and their slots."""

    def __init__(self, unit: QueuedUnit, depth: int) -> None:
        name = unit.name.lower()
        self.unit, self.depth = unit, depth
        # Thermometer codes of the number of instructions in flight, and of those not started yet.
        self.in_flight = Signal(depth, name=f"in_flight_{name}")
        self.waiting = Signal(depth, name=f"waiting_{name}")
        self.newest = Signal(range(depth), name=f"newest_{name}")
        # One bit for each slot.
        self.next = Signal(depth, init=1, name=f"next_{name}")
        self.oldest = Signal(depth, init=1, name=f"oldest_{name}")
        self.finishing = Signal(depth, name=f"finishing_{name}")
        self.finished = Signal(depth, name=f"finished_{name}", reset_less=True)
        # Without a reset: written when an instruction enters its slot, and read only from then on.
        self.waits = [
            {
                other: Signal(depth, name=f"waits_{name}_{slot}_{other.name.lower()}", reset_less=True)
                for other in _WAITS_FOR[unit]
            }
            for slot in range(depth)
        ]
        # Slots compared in this cycle, those of the next cycle, and one-hot those of the previous cycle.
        self.slots = [
            Signal(range(depth), name=f"slot_{name}_{way}", init=depth - 1 - way) for way in range(ways(depth))
        ]
        self.following = [Signal(range(depth), name=f"following_{name}_{way}") for way in range(ways(depth))]
        self.compared = [Signal(depth, name=f"compared_{name}_{way}") for way in range(ways(depth))]

    def step(self, m: Module, enters: Value, starts: Value, ends: Value) -> None:
        """Let the next instruction enter, the oldest one that waits start, and the oldest one of all end."""
        for count, more, less in ((self.in_flight, enters, ends), (self.waiting, enters, starts)):
            with m.If(more != less):
                m.d.sync += count.eq(Mux(more, Cat(1, count), count[1:]))
        with m.If(enters):
            m.d.sync += self.newest.eq(self.newest + 1)
        with m.If(starts):
            m.d.sync += self.next.eq(self.next.rotate_left(1))
        with m.If(ends):
            m.d.sync += self.oldest.eq(self.oldest.rotate_left(1))
        m.d.comb += self.finishing.eq(Mux(ends, self.oldest, 0))
        m.d.sync += self.finished.eq(self.finishing)


class Scoreboard(wiring.Component):
    """Keeps the rows and bytes that each instruction in flight touches, and the older ones that it still waits for.

    Each unit starts and finishes its instructions in order and has ``command_queue_depth`` slots. An instruction waits
    for those older instructions in other units that touch the same rows or bytes, if one of the two writes them.
    Instructions of one unit follow each other through the same pipeline and need not wait, with one exception: the
    activation unit may read the unified buffer before the rows of an older instruction have arrived there. Instructions
    only wait for older ones, so the oldest one of all can always go on: there is no deadlock.

    A new instruction is compared with older ones in four cycles at the most, the youngest ones of all units first.

    Members
    -------
    unit, access
        The next instruction's unit and what it touches; held from ``compare`` until the cycle after ``allocate``, the
        unit and the members of a single bit from a cycle before to a cycle after that.
    compare
        Set for one cycle: compare a new instruction. Four cycles after the last ``allocate`` or later; if an
        instruction got no slot, not before all units are idle.
    allocate
        One bit for each unit, that of the instruction's unit set: give it a slot. Two cycles or more after ``compare``,
        and two cycles or more after one in which the unit's bit of ``full`` was 0.
    full, busy, startable
        One bit for each :class:`QueuedUnit`: no slot is free; a slot is used; the next instruction waits for nothing.
    started, done
        One bit for each unit: the next instruction starts; the oldest one has finished.
    matrix_waits
        One bit for each unit: the matrix unit's next instruction waits for it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        units = len(QueuedUnit)
        super().__init__(
            {
                "compare": In(1),
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
        units = self._units = {unit: _Unit(unit, depth) for unit in QueuedUnit}
        # In registers, because all comparisons depend on them; the unit comes a cycle before.
        self._is = {unit: Signal(name=f"is_{unit.name.lower()}", reset_less=True) for unit in QueuedUnit}
        m.d.sync += [signal.eq(self.unit == unit) for unit, signal in self._is.items()]
        # An Activate rather than a load.
        self._activates = Signal(reset_less=True)
        m.d.sync += self._activates.eq((self.unit == _ACTIVATION) & self.access.writes)

        # An instruction enters its slot when all its comparisons have begun.
        active = Signal()
        pending = Signal(len(QueuedUnit))
        enters = Signal(len(QueuedUnit))
        m.d.comb += enters.eq(Mux(active, 0, self.allocate | pending))
        m.d.sync += pending.eq(Mux(active, self.allocate | pending, 0))
        self._scan(m, active)
        read = self._remember(m, enters)
        conflicts = [self._compare(m, platform, way, held) for way, held in enumerate(read)]
        self._wait(m, conflicts, enters)
        for unit, state in units.items():
            place = unit.value
            state.step(m, enters[place], self.started[place], self.done[place])
            blocked = Cat(Cat(waits.values()).any() for waits in state.waits) & state.next
            m.d.comb += [
                self.busy[place].eq(state.in_flight[0] | pending[place]),
                self.startable[place].eq(state.waiting[0] & ~blocked.any()),
            ]
        matrix = units[_MATRIX]
        for other in _WAITS_FOR[_MATRIX]:
            blocked = Cat(waits[other].any() for waits in matrix.waits) & matrix.next
            m.d.comb += self.matrix_waits[other.value].eq(matrix.waiting[0] & blocked.any())
        return m

    def _scan(self, m: Module, active: Signal) -> None:
        """Step through the older instructions, from the youngest to the oldest."""
        units, depth = self._units, self.config.command_queue_depth
        step = Signal()
        age = Signal(range(max(2, depth)), name="age")
        has_older = Signal()
        # Instructions of units that cannot conflict must not delay the new one, however many they are.
        is_host_read = self.unit == _HOST_READ
        activates = (self.unit == _ACTIVATION) & self.access.writes
        reads_rows = self.access.reads_source | self.access.reads_operand | ~self.access.writes
        in_question = {
            _HOST_READ: ~is_host_read,
            _HOST_WRITE: is_host_read | activates,
            _MATRIX: is_host_read | activates,
            _ACTIVATION: (self.unit != _ACTIVATION) | reads_rows,
        }
        matters = {unit: Signal(name=f"matters_{unit.name.lower()}", reset_less=True) for unit in units}
        older = []
        for unit, state in units.items():
            m.d.sync += matters[unit].eq(in_question[unit])
            older.append(state.in_flight[ways(depth) :].bit_select(age, 1) & matters[unit])
        m.d.comb += [
            step.eq(self.compare | active),
            has_older.eq(Cat(older).any()),
            self.full.eq(Cat(state.in_flight[-1] for state in units.values())),
        ]
        with m.If(step):
            m.d.sync += [active.eq(has_older), age.eq(Mux(has_older, age + ways(depth), 0))]
        for state in units.values():
            for way, slot in enumerate(state.slots):
                following = state.following[way]
                m.d.comb += following.eq(Mux(step, slot - ways(depth), state.newest - (way + 1)))
                # No instruction enters its slot in a cycle with a step.
                is_there = step & state.in_flight[way:].bit_select(age, 1) & matters[state.unit]
                place = Signal(depth, name=f"place_{state.unit.name.lower()}_{way}")
                m.d.comb += place.eq(1 << slot)
                # Not Mux, from which synthesis makes a synchronous reset of the registers, which must arrive earlier.
                m.d.sync += [slot.eq(following), state.compared[way].eq(place & is_there.replicate(depth))]

    def _remember(self, m: Module, enters: Value) -> list[dict[str, data.View]]:
        """Keep the accesses of instructions; returns those that are compared, for each way. A free place is written in
        every cycle until an instruction enters its slot, after which ``access`` may be that of another one."""
        read: list[dict[str, data.View]] = [{} for _ in range(ways(self.config.command_queue_depth))]
        for name, (kept, members) in _HELD.items():
            states = [self._units[unit] for unit in kept]
            layout = data.StructLayout({member: len(self._new(member)) for member in members})
            memory = Memory(shape=layout, depth=len(kept) * states[0].depth, init=[])
            m.submodules[f"held_{name}"] = memory
            write = memory.write_port()
            has_room = [~state.in_flight[-1] & ~enters[state.unit.value] for state in states]
            place: Value = states[0].newest
            if len(kept) == 2:
                is_second = self._is[kept[-1]]
                place = Cat(Mux(is_second, states[-1].newest, place), is_second)
                has_room = [is_ & room for is_, room in zip((self._is[unit] for unit in kept), has_room, strict=True)]
            m.d.comb += [
                write.addr.eq(place),
                write.en.eq(Cat(has_room).any()),
                *(write.data[member].eq(self._new(member)) for member in members),
            ]
            for way, accesses in enumerate(read):
                port = memory.read_port(domain="comb")
                following: Value = states[-1].following[way]
                if len(kept) == 2:
                    # The address is registered, so that the unit of this cycle selects it for the next one.
                    reads_first = self.unit == kept[-1]
                    following = Cat(Mux(reads_first, states[0].following[way], following), ~reads_first)
                first = len(kept) * states[0].depth - 1 - way
                # In a register, because the comparison after the memory is long.
                address = Signal(len(port.addr), name=f"address_{name}_{way}", init=first)
                m.d.sync += address.eq(following)
                m.d.comb += port.addr.eq(address)
                accesses[name] = port.data
        return read

    def _new(self, name: str) -> Value:
        """A member of ``access``, as it is kept."""
        value = Value.cast(self.access[name])
        return value[ceil_log2(self.config.host_alignment) :] if name in ("host", "host_end") else value

    def _compare(self, m: Module, platform: object, way: int, read: dict[str, data.View]) -> dict[QueuedUnit, Value]:
        """For each unit, whether its instruction compared in the previous cycle, if there is one, is a conflict."""
        new, activates = self.access, self._activates
        is_host_read, is_host_write, is_matrix, is_activation = self._is.values()

        def before(name: str, condition: Value) -> Signal:
            signal = Signal(name=f"{name}_{way}", reset_less=True)
            m.d.sync += signal.eq(condition)
            return signal

        def choose(condition: Value, one: tuple[Value, Value], other: tuple[Value, Value]) -> tuple[Value, Value]:
            return Mux(condition, one[0], other[0]), Mux(condition, one[1], other[1])

        def old(memory: str, name: str) -> tuple[Value, Value]:
            return Value.cast(read[memory][name]), Value.cast(read[memory][f"{name}_end"])

        def meet(name: str, one: tuple[Value, Value], other: tuple[Value, Value], counts: Value) -> Value:
            """Whether two ranges overlapped in the previous cycle, and ``counts`` was set."""
            # `counts` enters the comparison's cells: logic after the comparison would be too late.
            width = max(len(one[0]), len(other[1])) + 1
            difference = chained_sum(
                m,
                platform,
                f"{name}_difference_{way}",
                [*(Cat(value, Const(0, width - len(value))) for value in (one[0], other[1])), counts],
                first=lambda begin, end, counts: begin & counts,
                second=lambda begin, end, counts: ~(end & counts),
                carry=1,
            )
            return before(f"{name}_begins", difference[-1]) & before(f"{name}_ends", is_less(other[0], one[1]))

        rows, source, operand, host = (
            (self._new(name), self._new(f"{name}_end")) for name in ("unified_buffer", "source", "operand", "host")
        )
        activation = read["activations"]
        written = old("rows_host_read", "unified_buffer")
        written_back, multiplied = old("rows_host_write", "unified_buffer"), old("rows_matrix", "unified_buffer")
        # An instruction is not compared with others of its direction.
        transfers = meet("host", host, old("host", "host"), is_host_read | is_host_write)
        # The rows that an Activate reads are compared with results of older ones; other instructions' rows are compared
        # with all rows that those touch.
        results = old("activations", "unified_buffer")
        with_results = is_host_read | (activation.writes & (~activates | new.reads_source))
        with_other = (
            (is_host_read & activation.reads_source)
            | (is_matrix & activation.uses_accumulators)
            | (is_activation & new.reads_operand & activation.writes)
        )
        return {
            _HOST_READ: meet("host_read", rows, written, Const(1))
            | meet("host_read_source", source, written, new.reads_source)
            | meet("host_read_operand", operand, written, new.reads_operand)
            | transfers,
            _HOST_WRITE: meet("host_write", rows, written_back, new.writes) | transfers,
            _MATRIX: meet("matrix", rows, multiplied, new.writes)
            | meet("sums", source, old("sources", "source"), is_activation & new.uses_accumulators),
            _ACTIVATION: meet("results", choose(activates, source, rows), results, with_results)
            | meet(
                "other",
                choose(is_host_read, rows, choose(is_matrix, source, operand)),
                choose(is_activation, results, old("sources", "source")),
                with_other,
            )
            | meet("operand", rows, old("activations", "operand"), is_host_read & activation.reads_operand),
        }

    def _wait(self, m: Module, conflicts: list[dict[QueuedUnit, Value]], enters: Value) -> None:
        """Find the instructions that the new one waits for, and keep them in its slot until they have finished."""
        units, depth = self._units, self.config.command_queue_depth
        found = {}
        for unit, state in units.items():
            name = unit.name.lower()
            before = Signal(depth, name=f"found_{name}", reset_less=True)
            found[unit] = Signal(depth, name=f"finds_{name}")
            hits = [Signal(depth, name=f"hits_{name}_{way}") for way in range(ways(depth))]
            for way, (hit, compared) in enumerate(zip(hits, state.compared, strict=True)):
                m.d.comb += hit.eq(Mux(conflicts[way][unit], compared, 0))
            # An instruction that finishes is known late in a cycle, and taken out in the next one.
            m.d.comb += found[unit].eq((before | functools.reduce(operator.or_, hits)) & ~state.finished)
            m.d.sync += before.eq(Mux(self.compare, 0, found[unit]))
        for unit, state in units.items():
            for slot, waits in enumerate(state.waits):
                for other, bits in waits.items():
                    with m.If(enters[unit.value] & (state.newest == slot)):
                        m.d.sync += bits.eq(found[other])
                    for index in range(depth):
                        with m.If(units[other].finishing[index]):
                            m.d.sync += bits[index].eq(0)
