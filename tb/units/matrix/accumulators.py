"""Accumulators: sums are written or added while other rows are read, with correct results of both."""

import random

import cocotb
import numpy as np

from openmxu.rtl.matrix.accumulators import Accumulators, read_latency, tag_layout
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.models.payloads import pack, pack_lanes, unpack_lanes

ROUNDS = 6
UPDATES = 80


class Matrix(Agent):
    """Drives tags, and the partial sums that follow them through the columns."""

    def __init__(self, bench, memory):
        self.bench, self.memory = bench, memory
        self.rng = random_generator()
        self.tag, self.sums, self.done = bench.port("tag"), bench.port("partial_sums"), bench.port("done")
        self.rows, self.pause, self.consecutive = [], 1.0, False
        self.left = 0
        self.recent = {}  # row: cycle of its last tag
        self.in_flight = {}  # cycle: sums of the tag of that cycle
        self.done_times, self.expected_done = [], []
        self.place = 0
        bench.add(self)

    @property
    def is_idle(self):
        return self.left == 0 and len(self.done_times) == len(self.expected_done)

    def sample(self):
        if int(self.done.value):
            self.done_times.append(self.bench.cycle)

    def drive(self):
        cycle = self.bench.next_cycle
        self.tag.value = self._next_tag(cycle)
        size = CONFIG.size
        limit = 1 << (CONFIG.partial_sum_width - 1)
        lanes = self.rng.integers(-limit, limit, size)
        for column in range(size):
            sums = self.in_flight.get(cycle - Accumulators.tag_lead - column)
            if sums is not None:
                lanes[column] = sums[column]
        self.in_flight.pop(cycle - Accumulators.tag_lead - size, None)
        self.sums.value = pack_lanes(lanes[np.newaxis], CONFIG.partial_sum_width)[0]

    def _next_tag(self, cycle):
        layout = tag_layout(CONFIG)
        nothing = {
            "valid": 0,
            "row": int(self.rng.choice(self.rows or [0])),
            "accumulate": random.getrandbits(1),
            "shift": random.randrange(3),
        }
        if not self.left or random.random() < self.pause:
            return pack(layout, nothing)
        if self.consecutive:
            row = self.rows[self.place % len(self.rows)]
            self.place += 1
        else:
            row = int(self.rng.choice(self.rows))
        accumulate = self.consecutive or random.random() < 0.7
        if accumulate and cycle - self.recent.get(row, -10) < Accumulators.update_latency:
            return pack(layout, nothing)
        self.recent[row] = cycle
        self.left -= 1
        limit = 1 << (CONFIG.partial_sum_width - 1)
        sums = self.rng.integers(-limit, limit, CONFIG.size)
        shift = random.randrange(3)
        self.in_flight[cycle] = sums
        self.memory[row] = Accumulators.compute(self.memory[row], sums, accumulate, shift)
        last = self.left == 0 or random.random() < 0.3
        if last:
            self.expected_done.append(cycle + Accumulators.done_latency(CONFIG))
        return pack(layout, {"valid": 1, "row": row, "accumulate": accumulate, "shift": shift, "last": last})


class Values(Agent):
    """Records the values that go to the activation unit."""

    def __init__(self, bench):
        self.port = bench.port("values")
        self.seen = []
        bench.add(self)

    def sample(self):
        self.seen.append(int(self.port.value))


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.7], pause=[0.0, 0.5])
async def updates_beside_reads(dut, idle, pause):
    bench = await Bench.start(dut, "accumulators")
    memory = np.zeros((CONFIG.accumulator_rows, CONFIG.size), np.int32)
    matrix, values = Matrix(bench, memory), Values(bench)
    reads = bench.source("read", idle)
    matrix.rows, matrix.pause = list(range(CONFIG.accumulator_rows)), pause
    rng = random_generator()
    expected = []
    for number in range(ROUNDS):
        rows = rng.permutation(CONFIG.accumulator_rows)
        half = len(rows) // 2
        matrix.rows = rows[:half].tolist()
        known = [row for row in rows[half:].tolist() if row in matrix.recent]
        asked = rng.choice(known, UPDATES).tolist() if known else []
        expected += [memory[row].copy() for row in asked]
        reads.send(*asked)
        matrix.left = UPDATES
        # In the first round, every row is overwritten, because its contents are unknown.
        if number == 0:
            matrix.rows = list(range(CONFIG.accumulator_rows))
            await _overwrite(bench, matrix)
        await bench.until(lambda: reads.is_empty and matrix.is_idle)
        await bench.steps(CONFIG.size + 6)
    assert matrix.done_times == matrix.expected_done
    _check_reads(reads, values, expected)


async def _started(dut):
    """Bench, memory, agents of the ports, and reads; every row has been written."""
    bench = await Bench.start(dut, "accumulators")
    memory = np.zeros((CONFIG.accumulator_rows, CONFIG.size), np.int32)
    matrix, values = Matrix(bench, memory), Values(bench)
    reads = bench.source("read")
    matrix.rows, matrix.pause, matrix.left = list(range(CONFIG.accumulator_rows)), 0.0, 1
    await _overwrite(bench, matrix)
    return bench, memory, matrix, values, reads


async def _overwrite(bench, matrix):
    """Write a known value to every row."""
    original = matrix._next_tag
    rows = list(matrix.rows)

    def overwrite(cycle):
        if not rows:
            return pack(tag_layout(CONFIG), {})
        row = rows.pop()
        matrix.left = len(rows)
        sums = matrix.rng.integers(-1000, 1000, CONFIG.size)
        matrix.in_flight[cycle], matrix.recent[row] = sums, cycle
        matrix.memory[row] = sums
        return pack(tag_layout(CONFIG), {"valid": 1, "row": row})

    matrix._next_tag = overwrite
    await bench.until(lambda: not rows)
    await bench.steps(CONFIG.size + 6)
    matrix._next_tag = original


def _check_reads(reads, values, expected):
    groups, lanes = CONFIG.column_groups, CONFIG.activation_lanes
    for cycle, row in zip(reads.times, expected, strict=True):
        start = cycle + read_latency(CONFIG)
        got = unpack_lanes(values.seen[start : start + groups], lanes, 32, signed=True)
        assert np.array_equal(got.T.reshape(-1), row), cycle


@cocotb.test()
async def reading_keeps_up_with_a_stream(dut):
    """While sums are added to consecutive rows, a read waits at most one cycle."""
    bench, memory, matrix, values, reads = await _started(dut)
    half = CONFIG.accumulator_rows // 2 // 2 * 2
    matrix.rows, matrix.consecutive = list(range(half)), True
    asked = [half + number % (CONFIG.accumulator_rows - half) for number in range(40)]
    expected = [memory[row].copy() for row in asked]
    reads.send(*asked)
    matrix.left = 40 * (CONFIG.column_groups + 2)
    begin = bench.cycle
    await bench.until(lambda: reads.is_empty)
    assert bench.cycle - begin <= 40 * (CONFIG.column_groups + 1) + 2
    await bench.steps(CONFIG.column_groups + 6)
    _check_reads(reads, values, expected)


@cocotb.test()
async def sums_can_be_read_as_soon_as_told(dut):
    """A read that comes ``read_delay`` cycles after the end of an instruction returns its last row."""
    bench, memory, matrix, values, reads = await _started(dut)
    expected = []
    for count in range(1, ROUNDS):
        matrix.consecutive, matrix.place, matrix.left = True, 0, count
        await bench.until(lambda: matrix.left == 0 and matrix.is_idle)
        await bench.until(lambda: bench.next_cycle >= matrix.done_times[-1] + Accumulators.read_delay)
        reads.send(count - 1)
        expected.append(memory[count - 1].copy())
        await bench.steps(CONFIG.size + 6)
    _check_reads(reads, values, expected)
