"""Matrix sequencer: every row of every pass once, in order, with the right tag, format and flags, and no hazard."""

import random
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import cocotb

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.dispatch.commands import matrix_command, matrix_walk
from openmxu.rtl.matrix.accumulators import Accumulators, tag_layout
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.models.walks import positions, random_walk

COMMANDS = 150
LOW_BYTES = SimpleNamespace(zero_point=0, is_signed=0)
HIGH_BYTES = SimpleNamespace(zero_point=0, is_signed=1)


@dataclass(frozen=True)
class Row:
    """Expected outputs for one row of one pass."""

    address: int | None
    accumulator: int
    accumulate: bool
    shift: int
    takes: bool
    last: bool
    format: SimpleNamespace


@dataclass(frozen=True)
class Multiply:
    """A MatrixMultiply or a Convolve."""

    walk: dict[str, int]
    accumulate: int
    next_tile: int
    wide_weights: int
    format: SimpleNamespace

    @property
    def payload(self):
        return pack(matrix_command(CONFIG), {**vars(self), "format": vars(self.format)})

    @property
    def rows(self):
        wide_input = self.walk["wide"]
        passes = [(weight, byte) for weight in range(self.wide_weights + 1) for byte in range(wide_input + 1)]
        for weight_byte, input_byte in passes:
            walk = self.walk | {"address": self.walk["address"] + input_byte}
            for position in positions(walk, CONFIG.unified_buffer_address_width):
                yield Row(
                    address=position.address,
                    accumulator=position.target,
                    accumulate=bool(self.accumulate) or (weight_byte, input_byte) != (0, 0),
                    shift=weight_byte + input_byte,
                    takes=bool(self.next_tile) and input_byte == 0 and position.first,
                    last=position.last and (weight_byte, input_byte) == passes[-1],
                    format=(HIGH_BYTES if input_byte else LOW_BYTES) if wide_input else self.format,
                )


def random_command(rng, *, most_rows=12, walk=None, target=None, **chosen):
    walk = walk or random_walk(rng, matrix_walk(CONFIG), min(most_rows, CONFIG.accumulator_rows))
    # Few accumulators, so that rows of different commands conflict.
    most = min(4, CONFIG.accumulator_rows - walk["rows"] + 1)
    walk |= {"target": int(rng.integers(0, most)) if target is None else target}
    wide_weights = int(rng.random() < 0.3)
    values = {
        "accumulate": int(rng.integers(2)),
        "next_tile": int(wide_weights or rng.random() < 0.4),
        "wide_weights": wide_weights,
        "format": unpack(OperandFormat, int(rng.integers(0, 1 << 10))),
    }
    return Multiply(**{"walk": walk, **values, **chosen})


def long_passes(rng, count):
    """Commands with so many rows per pass that no row has to wait for the update of its accumulator row."""
    program = []
    while len(program) < count:
        command = random_command(rng, target=0)
        if command.walk["rows"] >= Accumulators.update_latency:
            program.append(command)
    return program


class Surroundings(Agent):
    """Weight shifter and accumulators: offers tiles, and records the outputs of every cycle."""

    def __init__(self, bench, request, scarcity):
        self.bench, self.request, self.scarcity = bench, request, scarcity
        names = ("take", "format", "swap", "zero", "tag", "waits_for_tile")
        self.ports = {name: bench.port(name) for name in names}
        self.tile_coming = bench.port("tile_coming")
        self.ready = self.coming = False
        self.granted = []  # cycle, tag, taken, address
        self.seen = []
        bench.add(self)

    def sample(self):
        value = SimpleNamespace(**{name: int(port.value) for name, port in self.ports.items()})
        self.seen.append(value)
        tag = unpack(tag_layout(CONFIG), value.tag)
        requested = bool(self.request.times) and self.request.times[-1] == self.bench.cycle
        assert tag.valid or not requested, "a tag goes with every request"
        if value.take:
            assert self.ready, "took a tile that is not there"
            assert tag.valid
        if value.waits_for_tile:
            assert not self.ready
            assert not tag.valid
        self.ready = self.coming and not value.take
        if tag.valid:
            address = self.request.received[-1] if requested else None
            self.granted.append((self.bench.cycle, tag, value.take, address))

    def drive(self):
        self.coming = self.ready or random.random() >= self.scarcity
        self.tile_coming.value = int(self.coming)

    def check(self, program):
        """Check that exactly the rows of ``program`` were processed, in order."""
        rows = [row for command in program for row in command.rows]
        for row, (cycle, tag, taken, address) in zip(rows, self.granted, strict=True):
            assert address == row.address
            assert tag.row == row.accumulator
            assert (tag.accumulate, tag.shift, tag.last, taken) == (row.accumulate, row.shift, row.last, row.takes)
            later = self.seen[cycle + UnifiedBuffer.read_latency]
            assert later.swap == row.takes
            assert later.zero == (row.address is None)
            if row.address is not None:
                assert unpack(OperandFormat, later.format) == row.format
        assert sum(value.swap for value in self.seen) == sum(row.takes for row in rows)

        recent = {}
        for cycle, tag, _, _ in self.granted:
            if tag.accumulate and tag.row in recent:
                assert cycle - recent[tag.row] >= Accumulators.update_latency
            recent[tag.row] = cycle


async def make_bench(dut, idle=0.0, backpressure=0.0, scarcity=0.0):
    bench = await Bench.start(dut, "matrix_sequencer")
    commands = bench.source("commands", idle)
    request = bench.sink("request", backpressure)
    return bench, commands, request, Surroundings(bench, request, scarcity)


async def run(bench, commands, around, program):
    rows = sum(1 for command in program for _ in command.rows)
    commands.send(*(command.payload for command in program))
    await bench.until(lambda: len(around.granted) == rows)
    await bench.steps(6)
    assert commands.is_empty
    around.check(program)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.8], backpressure=[0.0, 0.6], scarcity=[0.0, 0.9])
async def rows_in_order(dut, idle, backpressure, scarcity):
    bench, commands, _, around = await make_bench(dut, idle, backpressure, scarcity)
    rng = random_generator()
    program = [random_command(rng) for _ in range(COMMANDS)]
    await run(bench, commands, around, program)
    if scarcity:
        assert any(value.waits_for_tile for value in around.seen)
    assert {row.address is None for command in program for row in command.rows} == {False, True}


@cocotb.test()
async def short_passes_wait_no_longer_than_necessary(dut):
    """A row that adds to an accumulator row being updated follows in exactly ``update_latency`` cycles."""
    bench, commands, _, around = await make_bench(dut)
    rng = random_generator()
    program = []
    for _ in range(60):
        walk = random_walk(rng, matrix_walk(CONFIG), int(rng.integers(1, 4)))
        program.append(random_command(rng, walk=walk, target=0, accumulate=1))
    await run(bench, commands, around, program)
    cycles, latest, waits = [], {}, 0
    for cycle, tag, _, _ in around.granted:
        if cycles:
            earliest = max(cycles[-1] + 1, latest.get(tag.row, 0) + Accumulators.update_latency)
            assert cycle == earliest
            waits += cycle > cycles[-1] + 1
        cycles.append(cycle)
        latest[tag.row] = cycle
    assert waits > len(program)


@cocotb.test()
async def passes_and_instructions_follow_without_a_gap(dut):
    bench, commands, _, around = await make_bench(dut)
    program = long_passes(random_generator(), 60)
    await run(bench, commands, around, program)
    assert all(later[0] == earlier[0] + 1 for earlier, later in pairwise(around.granted))


@cocotb.test()
async def long_passes_wait_only_for_tiles(dut):
    bench, commands, _, around = await make_bench(dut, scarcity=0.9)
    program = long_passes(random_generator(), 60)
    await run(bench, commands, around, program)
    active = {cycle for cycle, *_ in around.granted}
    for cycle in range(min(active), max(active)):
        assert around.seen[cycle].waits_for_tile == (cycle not in active)


@cocotb.test()
async def rows_outside_need_no_unified_buffer(dut):
    bench, commands, request, around = await make_bench(dut, backpressure=1.0, scarcity=0.5)
    rng = random_generator()
    program = []
    for _ in range(20):
        walk = random_walk(rng, matrix_walk(CONFIG), 8) | {"is_plane": 1, "width": 3, "y": -(1 << 15)}
        program.append(random_command(rng, walk=walk))
    await run(bench, commands, around, program)
    assert not request.received
