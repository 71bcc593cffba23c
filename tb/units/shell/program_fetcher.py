"""Program fetcher: every instruction of the ring once, in order, for any size of the ring and any rate of filling."""

import random

import cocotb
import numpy as np

from openmxu.arch.isa import WORD_BYTES
from tb.bench import STALLS, Agent, Bench
from tb.memories import ReadMemory
from tb.rack import AXI_ADDRESS_WIDTH, AXI_DATA_BYTES, SMALL_FETCHER_BYTES

INSTRUCTIONS = 80

UNITS = [
    *(("program_fetcher", data_bytes) for data_bytes in AXI_DATA_BYTES),
    *(("small_program_fetcher", data_bytes) for data_bytes in SMALL_FETCHER_BYTES),
]
"""Names and bus widths of the units under test."""


class Driver(Agent):
    """Puts random numbers of instructions into the ring whenever there is room."""

    def __init__(self, bench, memory, base, size, idle) -> None:
        self._memory, self._base, self._size = memory, base, size
        self._head_port, self._tail_port = bench.port("head"), bench.port("tail")
        self._head = self._room = 0
        self._idle = idle
        self.rest: list[int] = []
        bench.port("base").value = base
        bench.port("size").value = size
        bench.port("hold").value = 0
        self._head_port.value = 0
        bench.port("enable").value = 1
        bench.add(self)

    def sample(self) -> None:
        tail = int(self._tail_port.value)
        assert tail < self._size
        self._room = (tail - self._head - 1) % self._size

    def drive(self) -> None:
        if not self.rest or random.random() < self._idle:
            return
        for _ in range(random.randint(0, min(self._room, len(self.rest)))):
            place = (self._base + self._head) * WORD_BYTES
            word = self.rest.pop(0).to_bytes(WORD_BYTES, "little")
            self._memory[place : place + WORD_BYTES] = np.frombuffer(word, np.uint8)
            self._head = (self._head + 1) % self._size
        self._head_port.value = self._head

    def stop(self) -> None:
        """Discard the instructions not yet in the ring, and return to its beginning."""
        self.rest.clear()
        self._head = self._room = 0
        self._head_port.value = 0


def make(bench, data_bytes, base, size, idle, backpressure):
    """A driver, a memory and a sink for instructions."""
    memory = np.zeros(1 << AXI_ADDRESS_WIDTH, np.uint8)
    driver = Driver(bench, memory, base, size, idle)
    reads = ReadMemory(bench, "memory", memory, AXI_ADDRESS_WIDTH, data_bytes, max(idle, backpressure))
    return driver, reads, bench.sink("instructions", backpressure)


def words(count: int) -> list[int]:
    """Random instructions."""
    return [random.getrandbits(128) for _ in range(count)]


@cocotb.test()
@STALLS
@cocotb.parametrize(kind=UNITS, size=[2, 7, 61])
async def instructions_in_order(dut, kind, size, idle, backpressure):
    name, data_bytes = kind
    bench = await Bench.start(dut, f"{name}_{data_bytes}")
    base = random.randrange(1000)
    driver, reads, instructions = make(bench, data_bytes, base, size, idle, backpressure)
    expected = words(INSTRUCTIONS)
    driver.rest = expected.copy()
    await bench.until(lambda: len(instructions.received) == INSTRUCTIONS)
    await bench.steps(10)
    assert instructions.received == expected
    assert not int(bench.port("fetching").value)
    assert int(bench.port("tail").value) == INSTRUCTIONS % size
    for address, beats in reads.bursts:
        # All beats contain a byte of the ring.
        assert address + data_bytes > base * WORD_BYTES
        assert address + (beats - 1) * data_bytes < (base + size) * WORD_BYTES


@cocotb.test()
@STALLS
@cocotb.parametrize(kind=UNITS)
async def stop_and_go(dut, kind, idle, backpressure):
    """Disabled at any time, it delivers what has been requested already, and restarts at the beginning of the ring."""
    name, data_bytes = kind
    bench = await Bench.start(dut, f"{name}_{data_bytes}")
    driver, reads, instructions = make(bench, data_bytes, 5, 20, idle, backpressure)
    for _ in range(6):
        expected = words(INSTRUCTIONS)
        driver.rest = expected.copy()
        first = len(instructions.received)
        await bench.steps(random.randrange(1, 120))
        driver.stop()
        bench.port("enable").value = 0
        if random.random() < 0.5:
            await bench.step()
            await bench.until(lambda: not int(bench.port("fetching").value))
            await bench.step()
            assert int(bench.port("tail").value) == 0
        else:
            await bench.step()
        bench.port("enable").value = 1
        await bench.until(lambda: not int(bench.port("fetching").value))
        got = instructions.received[first:]
        assert got == expected[: len(got)]
    assert reads.is_idle


@cocotb.test()
@STALLS
@cocotb.parametrize(name=["program_fetcher", "small_program_fetcher"])
async def hold(dut, name, idle, backpressure):
    """While held, it delivers at most the few instructions that are already on their way to the output."""
    bench = await Bench.start(dut, f"{name}_16")
    driver, _, instructions = make(bench, 16, 0, 50, idle, backpressure)
    expected = words(INSTRUCTIONS)
    driver.rest = expected.copy()
    for _ in range(10):
        await bench.steps(random.randrange(1, 30))
        bench.port("hold").value = 1
        before = len(instructions.received)
        await bench.steps(60)
        assert len(instructions.received) <= before + 3
        bench.port("hold").value = 0
    await bench.until(lambda: len(instructions.received) == INSTRUCTIONS)
    assert instructions.received == expected


@cocotb.test()
@cocotb.parametrize(name=["program_fetcher", "small_program_fetcher"])
async def a_head_outside_the_ring_fetches_nothing(dut, name):
    bench = await Bench.start(dut, f"{name}_16")
    _, reads, instructions = make(bench, 16, 0, 8, 0.0, 0.0)
    for head in (8, 9, (1 << len(bench.port("head"))) - 1):
        bench.port("head").value = head
        await bench.steps(30)
    assert reads.bursts == []
    bench.port("head").value = 7
    await bench.until(lambda: len(instructions.received) == 7)


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def a_late_hold_is_in_time(dut, data_bytes):
    """A hold from the fourth cycle after a beat keeps back all instructions of that beat: an error reply takes that
    long to cause a hold."""
    bench = await Bench.start(dut, f"program_fetcher_{data_bytes}")
    driver, reads, instructions = make(bench, data_bytes, 0, 8, 0.0, 0.0)
    expected = words(1)
    driver.rest = expected.copy()
    beats = max(1, WORD_BYTES // data_bytes)
    await bench.until(lambda: len(reads.data.sent) == beats)
    await bench.steps(3)
    bench.port("hold").value = 1
    await bench.steps(30)
    assert instructions.received == []
    bench.port("hold").value = 0
    await bench.until(lambda: instructions.received == expected)
