"""Element fetcher: every step becomes its passes, with the right rows, in order and fetched ahead of their use."""

import cocotb
import numpy as np

from openmxu.arch import isa
from openmxu.arch.effects import OUTPUT_BYTES
from openmxu.rtl.activation.element_fetcher import ElementFetcher, fetch_layout, pass_layout
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.address_generator import step_layout
from openmxu.rtl.dispatch.commands import activation_walk
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.memories import RowReader
from tb.models.activation import Activation, ElementFormat, random_activation
from tb.models.payloads import bytes_of, pack, unpack

WALKS = 60

_STEP = step_layout(activation_walk(CONFIG))


def fetch(item):
    return pack(
        fetch_layout(CONFIG),
        {
            "from_unified_buffer": item.from_unified_buffer,
            "source_wide": item.source_format.wide,
            "operand": item.operand,
            "operand_address": item.operand_address,
            "operand_wide": item.operand_format.wide,
            "repeats": OUTPUT_BYTES[item.output_format] - 1,
        },
    )


def random_steps(item, rng):
    """Random steps of a walk; realistic window positions are left to the test of the walker."""
    positions = int(rng.integers(1, 6))
    count = CONFIG.unified_buffer_rows if item.from_unified_buffer else CONFIG.accumulator_rows
    steps = []
    for result in range(item.rows):
        for repeat in range(OUTPUT_BYTES[item.output_format]):
            for position in range(positions):
                steps.append(
                    {
                        "address": int(rng.integers(0, count - item.source_format.wide)),
                        "inside": int(rng.random() < 0.8),
                        "begins": int(position == 0),
                        "ends": int(position == positions - 1),
                        "repeat": repeat,
                        "turns": int(rng.integers(2)),
                        "result": result,
                        "last": 0,
                    }
                )
    steps[-1]["last"] = 1
    return steps


def expected_passes(item, steps, rows):
    """Each pass as a dictionary of the fields that matter."""
    passes = []
    for step in steps:
        has_operand = step["ends"] and item.operand != isa.Operand.NONE
        source = {
            "from_accumulators": int(step["inside"] and not item.from_unified_buffer),
            "from_elements": int(step["inside"] and item.from_unified_buffer),
            "operand": isa.Operand.NONE.value,
            "begins": step["begins"],
            "completes": int(step["ends"] and not has_operand),
            "last": int(step["last"] and not has_operand),
            "turns": step["turns"],
            "repeat": step["repeat"],
        }
        if source["from_accumulators"]:
            source["row"] = step["address"]
        if source["from_elements"]:
            source |= element(item.source_format, step["address"], rows)
        passes.append(source)
        if has_operand:
            place = item.operand_address + (step["result"] << item.operand_format.wide)
            operand = {
                "from_accumulators": 0,
                "from_elements": 1,
                "operand": item.operand.value,
                "begins": 1,
                "completes": 1,
                "last": step["last"],
                "turns": step["turns"],
                "repeat": step["repeat"],
            }
            passes.append(operand | element(item.operand_format, place, rows))
    return passes


def element(format, place, rows):
    content = {"low": rows[place].tolist()}
    return content | {"high": rows[place + 1].tolist()} if format.wide else content


class Passes:
    """Records accepted passes, as dictionaries with their rows.

    Attributes
    ----------
    received
        The passes.
    takes
        Whether passes are accepted.
    """

    def __init__(self, bench, backpressure=0.0):
        self.received = []
        self.takes = True
        self._low, self._high = bench.port("low"), bench.port("high")
        self.sink = bench.sink("passes", backpressure, on_transfer=self._accept, may_take=lambda: self.takes)

    def _accept(self, payload):
        got = vars(unpack(pass_layout(CONFIG), payload))
        for name, port in (("low", self._low), ("high", self._high)):
            got[name] = bytes_of(int(port.value), CONFIG.size).tolist()
        self.received.append(got)


@cocotb.test()
@STALLS
async def steps_become_passes(dut, idle, backpressure):
    bench = await Bench.start(dut, "element_fetcher")
    rng = random_generator()
    rows = rng.integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    commands, steps = bench.source("commands", idle), bench.source("steps", idle)
    passes = Passes(bench, backpressure)
    reader = RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, idle)
    expected = []
    for _ in range(WALKS):
        item = random_activation(rng)
        walk = random_steps(item, rng)
        commands.send(fetch(item))
        steps.send(*(pack(_STEP, {name: step[name] for name in step if name != "result"}) for step in walk))
        expected += expected_passes(item, walk, rows)
    await bench.until(lambda: len(passes.received) == len(expected), 100_000)
    await bench.steps(20)
    assert len(passes.received) == len(expected)
    for got, want in zip(passes.received, expected, strict=True):
        assert {name: got[name] for name in want} == want
    # No other rows are read.
    assert len(reader.requests.received) == sum(("low" in want) + ("high" in want) for want in expected)


@cocotb.test()
@cocotb.parametrize(wide=[False, True], from_unified_buffer=[False, True])
async def passes_follow_without_a_gap(dut, wide, from_unified_buffer):
    """One unified buffer row per cycle, or one pass per cycle if it needs no row."""
    bench = await Bench.start(dut, "element_fetcher")
    rows = np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    commands, steps = bench.source("commands"), bench.source("steps")
    passes = Passes(bench)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, 0.0)
    source_format = ElementFormat(wide=wide)
    item = Activation(0, 0, 1, from_unified_buffer=from_unified_buffer, source_format=source_format)
    count = 40
    for _ in range(3):
        commands.send(fetch(item))
        walk = [{"inside": 1, "begins": 1, "ends": 1, "last": int(index == count - 1)} for index in range(count)]
        steps.send(*(pack(_STEP, step) for step in walk))
    await bench.until(lambda: len(passes.received) == 3 * count)
    cycles = 2 if wide and from_unified_buffer else 1
    times = passes.sink.times
    assert times[-1] - times[0] == cycles * (3 * count - 1)


@cocotb.test()
async def rows_are_read_ahead(dut):
    """Passes that are not accepted do not delay reading the rows of later ones, as long as there is room."""
    bench = await Bench.start(dut, "element_fetcher")
    rng = random_generator()
    rows = rng.integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    commands, steps = bench.source("commands"), bench.source("steps")
    passes = Passes(bench)
    passes.takes = False
    reader = RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, 0.0)
    item = Activation(0, 0, 1, from_unified_buffer=True, source_format=ElementFormat(wide=True))
    commands.send(fetch(item))
    places = list(range(0, 2 * 30, 2))
    steps.send(*(pack(_STEP, {"address": place, "inside": 1, "last": int(place == places[-1])}) for place in places))
    await bench.steps(60)
    # One more pass is at the output.
    assert reader.requests.received == list(range(2 * (ElementFetcher.passes_ahead(CONFIG) + 1)))
    passes.takes = True
    await bench.until(lambda: len(passes.received) == len(places))
    assert [got["low"] for got in passes.received] == [rows[place].tolist() for place in places]
    assert [got["high"] for got in passes.received] == [rows[place + 1].tolist() for place in places]
