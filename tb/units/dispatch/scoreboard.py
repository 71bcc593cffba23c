"""Scoreboard against a list of instructions that each wait for a set of older ones."""

import random
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import RisingEdge

from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import CONFIG, Bench, random_generator
from tb.models.hazards import Access, conflict, random_access

CYCLES = 2500


@dataclass(eq=False)
class Flying:
    """An instruction that is queued or runs."""

    access: Access
    waits: set = field(default_factory=set)
    started: bool = False


class Model:
    """What the scoreboard has to know."""

    def __init__(self):
        self.flying = {unit: [] for unit in QueuedUnit}
        self.access, self.pending = None, set()

    def next_of(self, unit):
        """The instruction of ``unit`` that starts next."""
        return next((item for item in self.flying[unit] if not item.started), None)

    def is_full(self, unit):
        return len(self.flying[unit]) == CONFIG.command_queue_depth

    def outputs(self):
        waiting = {unit: self.next_of(unit) for unit in QueuedUnit}
        matrix = waiting[QueuedUnit.MATRIX]
        return {
            "full": _bits(self.is_full(unit) for unit in QueuedUnit),
            "busy": _bits(bool(self.flying[unit]) for unit in QueuedUnit),
            "startable": _bits(item is not None and not item.waits for item in waiting.values()),
            "matrix_waits": _bits(
                matrix is not None and any(item in matrix.waits for item in self.flying[unit]) for unit in QueuedUnit
            ),
        }

    def advance(self, checks, allocates, started, done):
        for unit in started:
            self.next_of(unit).started = True
        gone = {self.flying[unit].pop(0) for unit in done}
        if checks is not None:
            everything = {item for items in self.flying.values() for item in items}
            pending = {item for item in everything if conflict(item.access, checks)}
        else:
            pending = self.pending - gone
        for items in self.flying.values():
            for item in items:
                item.waits -= gone
        if allocates:
            self.flying[self.access.unit].append(Flying(self.access, self.pending - gone))
        self.access, self.pending = checks or self.access, pending


def _bits(flags):
    return sum(bool(flag) << index for index, flag in enumerate(flags))


@cocotb.test()
@cocotb.parametrize(eagerness=[0.15, 0.8])
async def waits_for_what_it_must(dut, eagerness):
    """``eagerness``: how probably a unit starts or finishes what it can in a cycle."""
    bench = await Bench.start(dut, "scoreboard")
    rng = random_generator()
    names = ("allocate", "unit", "access", "started", "done")
    ports = {name: bench.port(name) for name in names}
    outputs = {name: bench.port(name) for name in ("full", "busy", "startable", "matrix_waits")}
    model = Model()
    # Cycles for which the same access has been there; None when it has got its slot.
    age, stalls = None, 0
    for cycle in range(CYCLES):
        expected = model.outputs()
        units = list(QueuedUnit)
        started = [u for u in units if expected["startable"] >> u.value & 1 and random.random() < eagerness]
        done = [u for u in units if any(i.started for i in model.flying[u]) and random.random() < eagerness / 2]
        allocates = age is not None and age >= 2 and not model.is_full(model.access.unit) and random.random() < 0.7
        checks = random_access(rng) if age is None and random.random() < 0.8 else None
        access = checks or model.access
        if access is not None:
            ports["unit"].value, ports["access"].value = access.unit.value, access.payload
        ports["allocate"].value = 1 << model.access.unit.value if allocates else 0
        ports["started"].value = _bits(unit in started for unit in units)
        ports["done"].value = _bits(unit in done for unit in units)
        await RisingEdge(dut.clk)
        assert {name: int(port.value) for name, port in outputs.items()} == expected, cycle
        stalls += expected["startable"] == 0 and expected["busy"] != 0
        model.advance(checks, allocates, started, done)
        if checks is not None:
            age = 0
        age = None if allocates or age is None else age + 1
    assert stalls > 0
