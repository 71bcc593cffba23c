"""Compact activation unit: the Activate of the lite profile against the numerics, with stalls at every port."""

import cocotb
import numpy as np

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.memories import RowReader
from tb.models.activation import Activation, ActivationModel, Load
from tb.models.payloads import pack_lanes
from tb.pulses import Pulses
from tb.units.activation.activation_unit import Results, make_accumulators, make_rows, reads

COMMANDS = 25


class Sums(Agent):
    """The accumulators: column n of a row follows n + 1 cycles after its request."""

    def __init__(self, bench, content):
        self._content = content
        self._row, self._columns = bench.port("row"), bench.port("columns")
        self._asked = [0] * CONFIG.size
        bench.add(self)

    def sample(self):
        self._asked = [int(self._row.value) % CONFIG.accumulator_rows, *self._asked[:-1]]

    def drive(self):
        self._columns.value = pack_lanes(self._content[self._asked, range(CONFIG.size)][np.newaxis], 32)[0]


class Issue(Agent):
    """Issues commands in order; none that reads rows before they are written."""

    def __init__(self, bench, work, idle):
        self.work, self.sent, self.finished = work, 0, 0
        self.commands = bench.source("commands", idle)
        bench.add(self)

    def drive(self):
        if self.sent < len(self.work):
            item = self.work[self.sent]
            if not any(reads(item, older) for older in self.work[self.finished : self.sent]):
                self.commands.send(item.payload)
                self.sent += 1


def random_load(rng):
    """A load of parameters from a random address."""
    count = int(rng.integers(1, min(CONFIG.parameter_sets, CONFIG.unified_buffer_rows // 8) + 1))
    return Load(
        8 * int(rng.integers(0, CONFIG.unified_buffer_rows // 8 - count + 1)),
        int(rng.integers(0, CONFIG.parameter_sets - count + 1)),
        count,
    )


def random_activation(rng):
    """An Activate that converts accumulator rows to bytes."""
    rows = int(rng.choice([1, 2, rng.integers(1, 9)]))
    low = int(rng.choice([-128, 0]))
    output = {"zero_point": int(rng.integers(low, low + 256)), "minimum": low, "maximum": low + 255}
    if rng.random() < 0.3:
        limits = np.sort(rng.integers(-(1 << 17), 1 << 17, 2))
        output = {"zero_point": int(rng.integers(-1000, 1000)), "minimum": int(limits[0]), "maximum": int(limits[1])}
    return Activation(
        unified_buffer=int(rng.integers(0, CONFIG.unified_buffer_rows - rows + 1)),
        source=int(rng.integers(0, CONFIG.accumulator_rows - rows + 1)),
        rows=rows,
        parameters=int(rng.integers(0, CONFIG.parameter_sets)),
        output=output,
    )


@cocotb.test()
@STALLS
async def rows_are_activated(dut, idle, backpressure):
    bench = await Bench.start(dut, "compact_activation_unit")
    rng = random_generator()
    rows, accumulators = make_rows(rng), make_accumulators(rng)
    work = [Load(0, 0, CONFIG.parameter_sets)]
    work += [random_load(rng) if rng.random() < 0.2 else random_activation(rng) for _ in range(COMMANDS)]
    model = ActivationModel(rows.copy(), accumulators)
    expected = [model.execute(item) for item in work]
    ends = np.cumsum([len(written) for written in expected])

    Sums(bench, accumulators)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, idle)
    results = Results(bench, rows, backpressure)
    issue = Issue(bench, work, idle)

    def is_right(count):
        issue.finished = count
        return len(results.written) == ends[count - 1]

    done = Pulses(bench, "done", is_right)
    await bench.until(lambda: done.count == len(work), 500_000)
    await bench.steps(40)
    assert done.count == len(work)
    for item, written, end in zip(work, expected, ends, strict=True):
        assert results.content[end - len(written) : end] == written, item
    assert len(results.content) == ends[-1]
    assert np.array_equal(rows, model.rows)
