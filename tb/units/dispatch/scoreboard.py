"""Scoreboard against a model in which each instruction waits for a set of older ones."""

import random
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import CONFIG, Bench, random_generator
from tb.models.hazards import SINGLE_BITS, Access, conflict, random_access

CYCLES = 6000

MOST_STEPS = 4 * CONFIG.command_queue_depth
"""Maximum number of cycles of a comparison."""

SETTLED = 4
"""Cycles after ``allocate`` until the instruction is in its slot and the next one may be compared."""


@dataclass(eq=False)
class InFlight:
    """An instruction that is queued or running."""

    access: Access
    waits: set = field(default_factory=set)
    started: bool = False


class Model:
    """Reference model of the scoreboard."""

    def __init__(self):
        self.in_flight = {unit: [] for unit in QueuedUnit}
        self.new = None

    def next_of(self, unit):
        """The next instruction of ``unit`` to start."""
        return next((item for item in self.in_flight[unit] if not item.started), None)

    def has_room(self):
        return len(self.in_flight[self.new.access.unit]) < CONFIG.command_queue_depth

    def outputs(self):
        waiting = {unit: self.next_of(unit) for unit in QueuedUnit}
        matrix = waiting[QueuedUnit.MATRIX]
        return {
            "busy": _bits(bool(self.in_flight[unit]) for unit in QueuedUnit),
            "startable": _bits(item is not None and not item.waits for item in waiting.values()),
            "matrix_waits": _bits(
                matrix is not None and any(item in matrix.waits for item in self.in_flight[unit]) for unit in QueuedUnit
            ),
        }

    def compare(self, access):
        everything = [item for items in self.in_flight.values() for item in items]
        self.new = InFlight(access, {item for item in everything if conflict(item.access, access)})

    def advance(self, allocates, started, done):
        for unit in started:
            self.next_of(unit).started = True
        gone = {self.in_flight[unit].pop(0) for unit in done}
        if allocates:
            self.in_flight[self.new.access.unit].append(self.new)
        for item in [self.new, *(item for items in self.in_flight.values() for item in items)]:
            if item is not None:
                item.waits -= gone


def _bits(flags):
    return sum(bool(flag) << index for index, flag in enumerate(flags))


@cocotb.test()
@cocotb.parametrize(eagerness=[0.05, 0.3, 0.9])
async def conflicting_instructions_wait(dut, eagerness):
    """``eagerness``: probability in each cycle that a unit starts or finishes an instruction that it may."""
    bench = await Bench.start(dut, "scoreboard")
    rng = random_generator()
    ports = {name: bench.port(name) for name in ("compare", "allocate", "unit", "access", "started", "done")}
    outputs = {name: bench.port(name) for name in ("busy", "startable", "matrix_waits")}
    full = bench.port("full")
    model, units = Model(), list(QueuedUnit)
    # Cycles of the last `allocate` and the last `compare`, and the cycle from which the next `allocate` is possible.
    last, compared, free = -SETTLED, None, None
    late = stalls = allocated = 0
    # The next instruction, and whether its unit and single bits were valid in the last cycle.
    coming, announced = random_access(rng), False
    for cycle in range(CYCLES):
        expected = model.outputs()
        done = [u for u in units if any(i.started for i in model.in_flight[u]) and random.random() < eagerness / 2]
        allocates = free is not None and cycle >= max(free, compared) + 2 and random.random() < 0.7
        compares = compared is None and cycle >= last + SETTLED and announced and random.random() < 0.6
        if compares:
            model.compare(coming)
            coming, announced, compared = random_access(rng), False, cycle
        if compared is None and cycle > last + 2:
            unit = coming.unit if random.random() < 0.8 else random.choice(units)
            announced = unit is coming.unit
            ports["unit"].value = unit.value
            # The single-bit members come with the unit, all others later.
            others = random.getrandbits(len(ports["access"])) & ~SINGLE_BITS
            ports["access"].value = (coming.payload & SINGLE_BITS) | others
        elif compared is None and cycle == last + 2:
            # Only the single bits are still held; the others already belong to the next instruction.
            ports["access"].value = (model.new.access.payload & SINGLE_BITS) | (
                random.getrandbits(len(ports["access"])) & ~SINGLE_BITS
            )
        elif compares:
            ports["unit"].value, ports["access"].value = model.new.access.unit.value, model.new.access.payload
        ports["compare"].value = int(compares)
        ports["allocate"].value = 1 << model.new.access.unit.value if allocates else 0
        ports["done"].value = _bits(unit in done for unit in units)
        await FallingEdge(dut.clk)
        startable = int(outputs["startable"].value)
        started = [u for u in units if startable >> u.value & 1 and random.random() < eagerness]
        ports["started"].value = _bits(unit in started for unit in units)
        await RisingEdge(dut.clk)
        assert startable & ~expected["startable"] == 0, cycle
        if cycle >= last + SETTLED:
            assert {name: int(port.value) for name, port in outputs.items()} == expected, cycle
            stalls += expected["startable"] == 0 and expected["busy"] != 0
        if compared is not None and free is None:
            if int(full.value) >> model.new.access.unit.value & 1:
                late += model.has_room()
                assert late <= MOST_STEPS, cycle
            else:
                assert model.has_room(), cycle
                free, late = cycle, 0
        model.advance(allocates, started, done)
        if allocates:
            last, compared, free = cycle, None, None
            allocated += 1
    assert stalls > 0
    assert allocated > 100
