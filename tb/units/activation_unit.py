"""Activation unit: accumulator rows become unified buffer rows, as the models of requantizer and interpreter say."""

import random
from dataclasses import dataclass

import cocotb
import numpy as np

from openmxu.arch.legality import PARAMETER_ROWS
from openmxu.rtl.accumulators import read_latency
from openmxu.rtl.commands import ActivationKind, activation_command
from openmxu.rtl.requantizer import Requantizer
from openmxu.rtl.unified_buffer import UnifiedBuffer
from openmxu.sim.lockstep.contents import random_parameters
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.memories import RowReader, RowWriter
from tb.payloads import pack, pack_lanes
from tb.pulses import Pulses

COMMANDS = 40


@dataclass(frozen=True)
class Work:
    """An Activate, or a load of parameters."""

    kind: ActivationKind
    unified_buffer: int
    accumulator: int
    rows: int
    parameters: int
    output: dict

    @property
    def payload(self):
        return pack(activation_command(CONFIG), {**vars(self), "kind": self.kind.value})

    @property
    def output_rows(self):
        """Unified buffer rows that it writes."""
        return {ActivationKind.BYTE: 1, ActivationKind.INT32: 4, ActivationKind.LOAD_PARAMETERS: 0}[
            self.kind
        ] * self.rows


def random_work(rng, count):
    work = []
    for number in range(count):
        kind = ActivationKind(int(rng.choice(3, p=[0.55, 0.3, 0.15])) if number else 2)
        if kind is ActivationKind.LOAD_PARAMETERS:
            # At first all of them.
            rows = int(rng.integers(1, CONFIG.parameter_sets + 1)) if number else CONFIG.parameter_sets
            parameters = int(rng.integers(0, CONFIG.parameter_sets - rows + 1))
            source = int(rng.integers(0, CONFIG.unified_buffer_rows // PARAMETER_ROWS - rows + 1)) * PARAMETER_ROWS
            work.append(Work(kind, source, 0, rows, parameters, {}))
            continue
        per_row = 4 if kind is ActivationKind.INT32 else 1
        most = min(CONFIG.accumulator_rows, CONFIG.unified_buffer_rows // per_row)
        rows = min(most, int(rng.choice([1, 2, rng.integers(1, 20)])))
        limits = sorted(rng.choice([rng.integers(-128, 256), 0, 255, -128, 127], 2).tolist())
        work.append(
            Work(
                kind,
                int(rng.integers(0, CONFIG.unified_buffer_rows - per_row * rows + 1)),
                int(rng.integers(0, CONFIG.accumulator_rows - rows + 1)),
                rows,
                int(rng.integers(0, CONFIG.parameter_sets)),
                {"zero_point": int(rng.integers(-128, 256)), "minimum": limits[0], "maximum": limits[1]},
            )
        )
    return work


class AccumulatorRows(Agent):
    """The accumulators' read port: L values in each of S/L cycles."""

    def __init__(self, bench, content, stall):
        self.bench, self.content = bench, content
        self.values = bench.port("values")
        self.free = 0
        self.coming = {}
        bench.add(self)
        bench.sink("read", stall, on_transfer=self.accept, may_take=lambda: bench.next_cycle >= self.free)

    def accept(self, row):
        groups = CONFIG.column_groups
        self.free = self.bench.cycle + groups
        by_group = self.content[row].reshape(CONFIG.activation_lanes, groups).T
        for step, payload in enumerate(pack_lanes(by_group, 32)):
            self.coming[self.bench.cycle + read_latency(CONFIG) + step] = payload

    def drive(self):
        anything = random.getrandbits(32 * CONFIG.activation_lanes)
        self.values.value = self.coming.pop(self.bench.next_cycle, anything)


def expected_rows(work, accumulators, rows):
    """All rows that are written, in order."""
    written = []
    biases = np.zeros((CONFIG.parameter_sets, CONFIG.size), np.int32)
    scales = np.zeros((CONFIG.parameter_sets, CONFIG.size), np.float32)
    for item in work:
        if item.kind is ActivationKind.LOAD_PARAMETERS:
            for number in range(item.rows):
                start = item.unified_buffer + PARAMETER_ROWS * number
                columns = np.ascontiguousarray(rows[start : start + PARAMETER_ROWS].T)
                biases[item.parameters + number] = columns[:, :4].copy().view("<i4")[:, 0]
                scales[item.parameters + number] = columns[:, 4:].copy().view("<f4")[:, 0]
            continue
        sums = accumulators[item.accumulator : item.accumulator + item.rows]
        bias, scale = biases[item.parameters], scales[item.parameters]
        if item.kind is ActivationKind.INT32:
            total = np.ascontiguousarray(sums + bias).view(np.uint8).reshape(item.rows, CONFIG.size, 4)
            content = total.transpose(0, 2, 1).reshape(-1, CONFIG.size)
        else:
            content = Requantizer.compute(sums, bias, scale, **item.output).astype(np.uint8)
        written += [(item.unified_buffer + index, row.tobytes()) for index, row in enumerate(content)]
    return written


class Results(RowWriter):
    """Rows that are written, with their content."""

    def __init__(self, bench, stall):
        self.content = []
        rows = np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
        super().__init__(bench, "results", rows, stall)

    def _accept(self, payload):
        super()._accept(payload)
        self.content.append((self.written[-1], self._rows[self.written[-1]].tobytes()))


def make_accumulators(rng):
    content = rng.integers(-(2**17), 2**17, (CONFIG.accumulator_rows, CONFIG.size)).astype(np.int32)
    content[rng.random(content.shape) < 0.1] = 2**31 - 1
    return content


def make_rows(rng):
    blocks = [random_parameters(CONFIG, rng) for _ in range(CONFIG.unified_buffer_rows // PARAMETER_ROWS)]
    return np.concatenate(blocks)


@cocotb.test()
@STALLS
async def rows_are_activated(dut, idle, backpressure):
    bench = await Bench.start(dut, "activation_unit")
    rng = random_generator()
    accumulators, rows = make_accumulators(rng), make_rows(rng)
    work = random_work(rng, COMMANDS)
    expected = expected_rows(work, accumulators, rows)

    AccumulatorRows(bench, accumulators, idle)
    RowReader(bench, "parameter_rows", rows, UnifiedBuffer.read_latency, idle)
    results = Results(bench, backpressure)
    commands = bench.source("commands", idle)
    written = np.cumsum([item.output_rows for item in work])
    done = Pulses(bench, "done", lambda count: len(results.written) == written[count - 1])
    commands.send(*(item.payload for item in work))
    await bench.until(lambda: done.count == len(work), 60_000)
    await bench.steps(40)
    assert results.content == expected
    assert done.count == len(work)


@cocotb.test()
async def rows_follow_without_a_gap(dut):
    """A row every S/L cycles, instruction after instruction."""
    bench = await Bench.start(dut, "activation_unit")
    rng = random_generator()
    AccumulatorRows(bench, make_accumulators(rng), 0.0)
    RowReader(bench, "parameter_rows", make_rows(rng), UnifiedBuffer.read_latency, 0.0)
    results = Results(bench, 0.0)
    commands = bench.source("commands")
    rows = min(8, CONFIG.accumulator_rows)
    commands.send(*(Work(ActivationKind.BYTE, 0, 0, rows, 0, {}).payload for _ in range(10)))
    await bench.until(lambda: len(results.written) == 10 * rows)
    times = results.requests.times
    assert times[-1] - times[0] <= (10 * rows - 1) * CONFIG.column_groups + 2
