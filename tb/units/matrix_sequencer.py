"""Matrix sequencer: every row once, in order, with its tag, its format and its swap bit, and no hazard in between."""

import random
from dataclasses import dataclass
from itertools import pairwise

import cocotb

from openmxu.rtl.accumulators import Accumulators, tag_layout
from openmxu.rtl.commands import matrix_command
from openmxu.rtl.systolic_data_setup import OperandFormat
from openmxu.rtl.unified_buffer import UnifiedBuffer
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.payloads import pack, unpack

COMMANDS = 120


@dataclass(frozen=True)
class Multiply:
    """A MatrixMultiply."""

    unified_buffer: int
    accumulator: int
    rows: int
    accumulate: int
    next_tile: int
    format: int

    @property
    def payload(self):
        values = {**vars(self), "format": unpack(OperandFormat, self.format).__dict__}
        return pack(matrix_command(CONFIG), values)


def random_commands(rng, count):
    commands = []
    for number in range(count):
        most = min(CONFIG.unified_buffer_rows, CONFIG.accumulator_rows)
        rows = min(most, int(rng.choice([1, 1, 2, 3, rng.integers(1, 12)])))
        # Few accumulators, so that rows meet.
        accumulator = int(rng.integers(0, min(4, CONFIG.accumulator_rows - rows + 1)))
        unified_buffer = int(rng.integers(0, CONFIG.unified_buffer_rows - rows + 1))
        next_tile = int(number == 0 or rng.random() < 0.4)
        format = int(rng.integers(0, 1 << 10))
        commands.append(Multiply(unified_buffer, accumulator, rows, int(rng.integers(2)), next_tile, format))
    return commands


class Surroundings(Agent):
    """Weight shifter and accumulators: offers tiles, and records what happens in every cycle."""

    def __init__(self, bench, request, scarcity):
        self.bench, self.request, self.scarcity = bench, request, scarcity
        names = ("take", "format", "swap", "tag", "waits_for_tile")
        self.ports = {name: bench.port(name) for name in names}
        self.tile_ready = bench.port("tile_ready")
        self.ready = False
        self.grants = []  # cycle, tag, taken
        self.formats, self.swaps, self.waits = [], [], []
        bench.add(self)

    def sample(self):
        value = {name: int(port.value) for name, port in self.ports.items()}
        self.formats.append(value["format"])
        self.swaps.append(value["swap"])
        self.waits.append(value["waits_for_tile"])
        tag = unpack(tag_layout(CONFIG), value["tag"])
        requested = bool(self.request.times) and self.request.times[-1] == self.bench.cycle
        assert bool(tag.valid) == requested, "a tag goes with every request, and with nothing else"
        if value["take"]:
            assert self.ready, "took a tile that is not there"
            assert requested
        if value["waits_for_tile"]:
            assert not self.ready
            assert not requested
        if requested:
            self.grants.append((self.bench.cycle, tag, value["take"]))
        if value["take"]:
            self.ready = False

    def drive(self):
        self.ready = self.ready or random.random() >= self.scarcity
        self.tile_ready.value = int(self.ready)


@cocotb.test()
@STALLS
@cocotb.parametrize(scarcity=[0.0, 0.9])
async def rows_in_order(dut, idle, backpressure, scarcity):
    bench = await Bench.start(dut, "matrix_sequencer")
    commands = bench.source("commands", idle)
    request = bench.sink("request", backpressure)
    around = Surroundings(bench, request, scarcity)
    program = random_commands(random_generator(), COMMANDS)
    commands.send(*(command.payload for command in program))
    rows = [(command, row) for command in program for row in range(command.rows)]
    await bench.until(lambda: len(request.received) == len(rows))
    await bench.steps(6)
    assert request.received == [command.unified_buffer + row for command, row in rows]

    for (command, row), (cycle, tag, taken) in zip(rows, around.grants, strict=True):
        assert tag.row == command.accumulator + row
        assert tag.accumulate == command.accumulate
        assert tag.last == (row == command.rows - 1)
        assert taken == (command.next_tile and row == 0)
        assert around.formats[cycle + UnifiedBuffer.read_latency] == command.format
        assert around.swaps[cycle + UnifiedBuffer.read_latency] == taken
    assert sum(around.swaps) == sum(command.next_tile for command in program)
    if scarcity:
        assert any(around.waits)

    recent = {}
    for cycle, tag, _ in around.grants:
        if tag.accumulate and tag.row in recent:
            assert cycle - recent[tag.row] >= Accumulators.update_latency
        recent[tag.row] = cycle


@cocotb.test()
async def instructions_follow_without_a_gap(dut):
    bench = await Bench.start(dut, "matrix_sequencer")
    commands, request = bench.source("commands"), bench.sink("request")
    bench.port("tile_ready").value = 1
    rows = min(5, CONFIG.accumulator_rows)
    program = [Multiply(0, 0, rows, number % 2 * (rows >= 5), number % 3 == 0, 0) for number in range(20)]
    commands.send(*(command.payload for command in program))
    await bench.until(lambda: len(request.received) == 20 * rows)
    assert all(later == earlier + 1 for earlier, later in pairwise(request.times))
