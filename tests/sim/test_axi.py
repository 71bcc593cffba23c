"""The simulated AXI shell gives the results of the interpreter with any stalls, and hides the latency of memories."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import openmxu
from openmxu.arch.events import Counter
from openmxu.arch.isa import format_named
from openmxu.compiler import evaluate, gemm, gemm_input, gemm_network
from openmxu.driver import MappedDevice, MemoryKind
from openmxu.sim.axi import SimulatedAxi
from openmxu.sim.interpreter import Interpreter
from scripts.faults import CONFIG
from tb.lockstep import cases, outcome

CASES = 30

_HALT = format_named("Halt")()


@pytest.mark.parametrize(("stall", "latency", "ring_bytes"), [(0.0, 1, 48), (0.3, 20, 160), (0.7, 100, 65536)])
def test_random_programs(stall, latency, ring_bytes):
    transport = SimulatedAxi(CONFIG, seed=1, stall_probability=stall, memory_latency=latency)
    reference = Interpreter(CONFIG)
    with MappedDevice(transport, ring_bytes=ring_bytes) as device:
        for case in cases(int(1000 * stall), CASES, [CONFIG]):
            for one in (device, reference):
                one.scrub() if case.seed % 3 == 0 else one.reset()
            hosts = case.host_memory.copy(), case.host_memory.copy()
            for program in case.executions():
                got = outcome(device, program, hosts[0], case.weight_memory)
                assert got == outcome(reference, program, hosts[1], case.weight_memory), case.seed
                assert np.array_equal(*hosts), case.seed


def test_a_program_that_stays():
    """Its ring holds all of it, and is used again; nothing but inputs is written for the second run and the third."""

    class Counting(SimulatedAxi):
        written = 0

        def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
            self.written += len(content)
            super().write_memory(memory, address, content)

    shape, other = (6, 30, 20), (5, 9, 9)
    program = gemm(*shape, CONFIG)
    with MappedDevice(transport := Counting(CONFIG), ring_bytes=32) as device:
        device.load(program)
        loaded = transport.written
        assert loaded > len(program.weights)
        for seed in range(3):
            values = gemm_input(6, 30, seed=seed)
            assert (device.run(values)["y"] == evaluate(gemm_network(*shape), values)).all()
        assert transport.written == loaded + 3 * 6 * 32  # rows of 30 values take 32 bytes
        device.reset()
        assert (device.run(values)["y"] == evaluate(gemm_network(*shape), values)).all()
        device.load(gemm(*other, CONFIG))
        values = gemm_input(5, 9)
        assert (device.run(values)["y"] == evaluate(gemm_network(*other), values)).all()


@pytest.mark.parametrize("name", ["Read_Host_Memory", "Write_Host_Memory"])
def test_sequential_transfers_fill_the_bus(name):
    """At least 95 % of a beat per cycle, including the initial latency, with a memory latency of 100 cycles."""
    rows = CONFIG.unified_buffer_rows
    transfers = [format_named(name)(unified_buffer=0, rows=rows, host=0)] * 8
    with openmxu.open_device("axi", CONFIG, memory_latency=100) as device:
        memory = np.zeros(rows * CONFIG.size, np.uint8)
        device.execute([_HALT], memory, memory)
        device.clear_counters()
        device.execute([*transfers, _HALT], memory, memory)
        counters = device.counters
    moved = counters[Counter.HOST_READ_BYTES] + counters[Counter.HOST_WRITE_BYTES]
    assert moved == 8 * rows * CONFIG.size
    beats = moved // CONFIG.host_data_bytes
    assert beats / counters[Counter.CYCLES] >= 0.95


@pytest.mark.parametrize("name", ["Read_Host_Memory", "Write_Host_Memory"])
def test_a_host_memory_of_limited_rate(name):
    rows = CONFIG.unified_buffer_rows
    transfers = [format_named(name)(unified_buffer=0, rows=rows, host=0)] * 8
    memory = np.zeros(rows * CONFIG.size, np.uint8)
    with openmxu.open_device("axi", CONFIG, host_rate=Fraction(CONFIG.host_data_bytes, 3), weight_rate=1) as device:
        device.execute([*transfers, _HALT], memory, memory)
        cycles = device.counters[Counter.CYCLES]
    assert 3 * 8 * len(memory) // CONFIG.host_data_bytes == pytest.approx(cycles, rel=0.05)
    assert cycles >= 3 * 8 * len(memory) // CONFIG.host_data_bytes


def test_a_weight_memory_of_limited_rate():
    shape = (1, 64, 64)
    values = gemm_input(1, 64)
    with openmxu.open_device("axi", CONFIG, weight_rate=Fraction(1, 2), stall_probability=0.1) as device:
        device.load(gemm(*shape, CONFIG))
        assert (device.run(values)["y"] == evaluate(gemm_network(*shape), values)).all()
        assert 64 * 64 * 2 <= device.counters[Counter.CYCLES] <= 64 * 64 * 2.2


def test_parameters_are_checked():
    for options, message in (
        ({"stall_probability": 1.0}, "stall_probability must be at least 0 and less than 1, not 1.0"),
        ({"memory_latency": 0}, "memory_latency must be at least 1 cycle, not 0"),
        ({"host_rate": 0}, "host_rate must be positive, not 0"),
        ({"seed": -1}, "seed must be from 0 to 2\\*\\*64 - 1, not -1"),
        ({"memory_bytes": 16}, "memory_bytes must be at least 4096, not 16"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            SimulatedAxi(CONFIG, **options)
