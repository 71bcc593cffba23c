"""Programs on the core behind the AXI shell, run through the driver: results equal those of the interpreter."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge

from openmxu.arch.events import Counter, EventKind
from openmxu.arch.isa import WORD_BYTES, format_named
from openmxu.compiler.benchmark import gemm, gemm_input
from openmxu.device import DeviceFault
from openmxu.driver import MappedDevice, MemoryKind
from openmxu.sim.interpreter import Interpreter
from tb.axi.system import AxiSystem
from tb.bench import CONFIG, random_generator
from tb.core.programs import fill, memories, outcome
from tb.lockstep import cases

CASES = 2
PRODUCTS = 3
RINGS = (2 * WORD_BYTES, 7 * WORD_BYTES, 4096)
"""Sizes from the smallest ring to one that holds any of these programs."""

_HALT = format_named("Halt")()
_NOP = format_named("Nop")()
_TAG = format_named("Debug_Tag")
_INTERRUPT = format_named("Interrupt_Host")
_SYNCHRONIZE = format_named("Host_Synchronize")


def nothing():
    """An empty memory."""
    return np.zeros(0, np.uint8)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def matrix_products(dut, stall):
    """Compiled products of random shapes, one program after the other."""
    system, reference = await AxiSystem.start(dut, stall), Interpreter(CONFIG)
    rng = random_generator()

    @bridge
    def run():
        device = MappedDevice(system)
        assert device.config == CONFIG
        for _ in range(PRODUCTS):
            m, k, n = rng.integers(1, 4 * CONFIG.size, 3).tolist()
            seed = int(rng.integers(1 << 30))
            program, given = gemm(m, k, n, CONFIG, seed=seed), gemm_input(m, k, seed=seed)
            device.clear_counters()
            result, expected = program.run(device, given), program.run(reference, given)
            assert np.array_equal(result["y"], expected["y"]), (m, k, n, seed)
            counters = device.counters
            kinds = (Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT, Counter.NON_MATRIX)
            assert sum(counters[kind] for kind in kinds) == counters[Counter.CYCLES] > 0

    await run()


@cocotb.test()
@cocotb.parametrize(ring_bytes=RINGS)
async def random_programs(dut, ring_bytes):
    """Random programs, some with a fault, in rings of various sizes; memory after the host memory stays unchanged."""
    system, reference = await AxiSystem.start(dut, random.choice([0.0, 0.2, 0.5])), Interpreter(CONFIG)
    seed = int(random_generator().integers(1 << 30))
    host = system.region(MemoryKind.HOST)
    behind = random.randbytes(4096)

    @bridge
    def run():
        device = MappedDevice(system, ring_bytes=ring_bytes)
        for either in (device, reference):
            fill(either, seed)
        for case in cases(seed, CASES, [CONFIG]):
            for either in (device, reference):
                either.reset()
            hosts = case.host_memory.copy(), case.host_memory.copy()
            first = host.base + 4096 + hosts[0].size
            system.write_memory(MemoryKind.HOST, first, behind)
            for number, program in enumerate(case.executions()):
                got = outcome(device, program, hosts[0], case.weight_memory)
                assert got == outcome(reference, program, hosts[1], case.weight_memory), (case.seed, number)
                assert np.array_equal(*hosts), (case.seed, number)
                assert system.read_memory(MemoryKind.HOST, first, len(behind)) == behind
            for mine, other in zip(memories(device), memories(reference), strict=True):
                assert np.array_equal(mine, other), case.seed

    await run()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def events_in_order(dut, stall):
    """More events than the queue holds, of every kind but a fault, in programs that wrap around the ring."""
    system, reference = await AxiSystem.start(dut, stall), Interpreter(CONFIG)
    program = []
    for tag in range(60):
        kind = random.choice([_TAG, _TAG, _INTERRUPT, _SYNCHRONIZE])
        program += [kind(tag=random.getrandbits(32)), *[_NOP] * random.randrange(3)]
        if tag % 20 == 19:
            program.append(_HALT)

    @bridge
    def run():
        device = MappedDevice(system, ring_bytes=10 * WORD_BYTES)
        events = device.execute(program, nothing(), nothing())
        assert events == reference.execute(program, nothing(), nothing())
        assert {event.kind for event in events} == set(EventKind) - {EventKind.FAULT}

    await run()


@cocotb.test()
async def fault_is_reported(dut):
    """A fault in a program longer than the ring: the rest of the program is dropped, and the next one runs."""
    system = await AxiSystem.start(dut, 0.2)
    bad = format_named("Read_Host_Memory")(unified_buffer=0, rows=1, host=1 << 16)

    @bridge
    def run():
        device = MappedDevice(system, ring_bytes=5 * WORD_BYTES)
        for _ in range(3):
            with pytest.raises(DeviceFault, match=r"^instruction 7 \(read_host_memory .*HOST_WINDOW") as caught:
                device.execute([*[_NOP] * 7, bad, *[_TAG(tag=1)] * 600, _HALT], nothing(), nothing())
            assert len(caught.value.events) == 1
            (halt,) = device.execute([_HALT], nothing(), nothing())
            assert (halt.kind, halt.index) == (EventKind.HALT, 0)

    await run()
