"""Activation unit: results equal those of the numerics, in every mode, in order and without gaps."""

import random

import cocotb
import numpy as np

from openmxu.arch import isa
from openmxu.arch.effects import PARAMETER_ROWS, TABLES
from openmxu.rtl.activation.activation_unit import ActivationUnit
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.dispatch.commands import activation_command
from openmxu.rtl.matrix.accumulators import read_latency
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.memories import RowReader, RowWriter
from tb.models.activation import Activation, ActivationModel, ElementFormat, Load, random_activation, random_load
from tb.models.payloads import pack_lanes
from tb.models.scales import random_scales, random_totals
from tb.pulses import Pulses

COMMANDS = 60

COPIES = 6

_QUEUED, _STEPS = 5, 7
"""Cycle in which a command at its port is queued, and number of cycles that it takes in total."""


def _bits(*names):
    fields = [activation_command(CONFIG)[name] for name in names]
    return sum((1 << field.width) - 1 << field.offset for field in fields)


_EARLY = [_bits("output_format"), _bits("output_format", "operand_scale", "output", "table", "table_number")]
"""Bits of a command that are valid two cycles before the others, and one cycle before them."""


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


class Results(RowWriter):
    """Records the rows that are written, with their contents."""

    def __init__(self, bench, rows, stall):
        self.content = []
        super().__init__(bench, "results", rows, stall)

    def _accept(self, payload):
        super()._accept(payload)
        self.content.append((self.written[-1], self._rows[self.written[-1]].tobytes()))


class Issue(Agent):
    """Queues and starts commands in order, like the dispatcher; none starts before older ones that it waits for."""

    def __init__(self, bench, work, idle, waits):
        self.bench, self.work, self.idle, self.waits = bench, work, idle, waits
        self.sent = self.queued = 0
        self.ends = []  # cycles of ``done``
        self.step = 0
        self.ports = bench.port("work"), bench.port("queued")
        self.commands = bench.source("commands", idle)
        bench.add(self)

    def end(self, count):
        """The oldest command ends."""
        self.ends.append(self.bench.cycle)
        return count <= self.queued

    @property
    def finished(self):
        """The number of commands whose results can be read."""
        return sum(cycle + ActivationUnit.done_lead < self.bench.next_cycle for cycle in self.ends)

    def drive(self):
        """Queue a command in the fifth of seven cycles; it may start two cycles later."""
        if self.sent < self.queued - (self.step == _QUEUED) and all(
            not self.waits(self.work[self.sent], older) for older in self.work[self.finished : self.sent]
        ):
            self.commands.send(self.work[self.sent].start)
            self.sent += 1
        work, queued = self.ports
        queued.value = int(self.step == _QUEUED - 1)
        anything = random.getrandbits(len(work))
        if self.step:
            if self.step < len(_EARLY):
                self._announce(_EARLY[self.step])
            elif self.step == len(_EARLY):
                work.value = self.work[self.queued].payload
            self.queued += self.step == _QUEUED - 1
            self.step = (self.step + 1) % _STEPS
            return
        work.value = anything
        has_room = self.queued - self.finished < CONFIG.command_queue_depth
        if self.queued < len(self.work) and has_room and random.random() >= self.idle:
            self._announce(_EARLY[0])
            self.step = 1

    def _announce(self, bits):
        """Drive some bits of the next command, and anything as the others."""
        anything = random.getrandbits(len(self.ports[0]))
        self.ports[0].value = (anything & ~bits) | (self.work[self.queued].payload & bits)


def reads(item, older):
    """Whether an instruction reads rows that an older one writes."""
    written = range(older.unified_buffer, older.unified_buffer + older.output_rows)
    return any(max(read.start, written.start) < min(read.stop, written.stop) for read in item.unified_buffer_reads)


def in_order(item, written):
    """The rows that an instruction writes, in the order in which the unit writes them."""
    return written[::2] + written[1::2] if isinstance(item, Activation) and item.by_parity else written


def make_accumulators(rng):
    content = rng.integers(-(2**17), 2**17, (CONFIG.accumulator_rows, CONFIG.size)).astype(np.int32)
    content[rng.random(content.shape) < 0.1] = 2**31 - 1
    content[rng.random(content.shape) < 0.1] = -(2**31)
    return content


def make_rows(rng):
    """Valid parameter sets, which also serve as elements."""
    sets = -(-CONFIG.unified_buffer_rows // PARAMETER_ROWS)
    shape = (sets, CONFIG.size)
    ordinary = rng.random(sets) < 0.8
    biases = np.where(ordinary[:, np.newaxis], rng.integers(-10000, 10000, shape), random_totals(rng, shape))
    spread = (10.0 ** rng.uniform(-5, -1, shape) * rng.choice([-1, 1], shape)).astype(np.float32).view(np.uint32)
    scales = np.where(ordinary[:, np.newaxis], spread, random_scales(rng, shape).view(np.uint32))
    columns = np.stack([biases.astype("<u4"), scales.astype("<u4")], axis=-1).view(np.uint8)
    return columns.transpose(0, 2, 1).reshape(-1, CONFIG.size)[: CONFIG.unified_buffer_rows].copy()


def first_loads():
    """Loads that initialize parameters and tables, since these keep their contents from test to test."""
    return [Load(0, 0, CONFIG.parameter_sets), *(Load(0, table_number=number) for number in range(TABLES))]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.7])
async def rows_are_activated(dut, idle):
    bench = await Bench.start(dut, "activation_unit")
    rng = random_generator()
    rows, accumulators = make_rows(rng), make_accumulators(rng)
    work = first_loads()
    work += [random_load(rng) if rng.random() < 0.12 else random_activation(rng) for _ in range(COMMANDS)]
    model = ActivationModel(rows.copy(), accumulators)
    expected = [in_order(item, model.execute(item)) for item in work]
    ends = np.cumsum([len(written) for written in expected])

    AccumulatorRows(bench, accumulators, idle)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, idle)
    results = Results(bench, rows, 0.0)
    issue = Issue(bench, work, idle, reads)
    done = Pulses(bench, "done", issue.end)
    await bench.until(lambda: done.count == len(work), 200_000)
    await bench.steps(40)
    assert done.count == len(work)
    for item, written, end in zip(work, expected, ends, strict=True):
        assert results.content[end - len(written) : end] == written, item
    assert len(results.content) == ends[-1]
    assert np.array_equal(rows, model.rows)
    for cycle, written, end in zip(issue.ends, expected, ends, strict=True):
        assert not written or results.requests.times[end - 1] == cycle + ActivationUnit.done_lead


@cocotb.test()
@cocotb.parametrize(
    source=["accumulators", "unified_buffer", "wide"],
    operand=[isa.Operand.NONE, isa.Operand.ADD, isa.Operand.MULTIPLY],
)
async def rows_follow_without_a_gap(dut, source, operand):
    """Instructions take S/L cycles per pass without gaps, or one cycle per unified buffer row if that takes longer."""
    bench = await Bench.start(dut, "activation_unit")
    rng = random_generator()
    AccumulatorRows(bench, make_accumulators(rng), 0.0)
    RowReader(bench, "rows", make_rows(rng), UnifiedBuffer.read_latency, 0.0)
    results = Results(bench, np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8), 0.0)
    # Results have several rows, so that two commands are enough to fill the unit.
    output_format = isa.OutputFormat.WORD if operand is isa.Operand.ADD else isa.OutputFormat.INT32
    rows = min(16, CONFIG.accumulator_rows)
    item = Activation(
        unified_buffer=0,
        source=0,
        rows=rows,
        output_format=output_format,
        from_unified_buffer=source != "accumulators",
        source_format=ElementFormat(wide=source == "wide"),
        operand=operand,
    )
    issue = Issue(bench, [item] * COPIES, 0.0, lambda item, older: False)
    Pulses(bench, "done", issue.end)
    await bench.until(lambda: len(results.written) == COPIES * item.output_rows)
    times = results.requests.times
    reads = sum(len(read) for read in item.unified_buffer_reads) / rows
    per_row = max(CONFIG.column_groups * item.passes / item.output_rows, reads)
    assert times[-1] - times[0] <= (len(times) - 1) * per_row + 2
