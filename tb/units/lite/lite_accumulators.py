"""Accumulators of the lite profile against numpy: instructions one after the other, with pauses between rows."""

import cocotb
import numpy as np

from openmxu.rtl.lite.accumulators import LiteAccumulators
from openmxu.rtl.matrix.accumulators import Accumulators, tag_layout
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack, pack_lanes, unpack_lanes

INSTRUCTIONS = 40


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def rows_are_added_to(dut, pause):
    bench = await Bench.start(dut, "lite_accumulators")
    rng = random_generator()
    size, rows, width = CONFIG.size, CONFIG.accumulator_rows, CONFIG.partial_sum_width
    limit = 1 << (width - 1)
    expected = np.zeros((rows, size), np.int32)
    tags, sums, looks, ends, seen_at = [], {}, [], [], []

    def cycles(count, accumulate=0):
        for _ in range(count):
            tags.append(pack(tag_layout(CONFIG), {"row": int(rng.integers(0, rows)), "accumulate": accumulate}))
            looks.append(int(rng.integers(0, rows)))

    def multiply(first, count, accumulate):
        values = rng.integers(-limit, limit, (count, size))
        for index in range(count):
            while rng.random() < pause:
                cycles(1, accumulate)
            for column in range(size):
                sums[len(tags) + LiteAccumulators.tag_lead, column] = values[index, column]
            tag = {"valid": 1, "row": first + index, "accumulate": accumulate, "last": index == count - 1}
            tags.append(pack(tag_layout(CONFIG), {name: int(value) for name, value in tag.items()}))
            looks.append(int(rng.integers(0, rows)))
        ends.append(len(tags))
        cycles(2, accumulate)
        content = slice(first, first + count)
        expected[content] = Accumulators.compute(expected[content], values, bool(accumulate))

    def look(row):
        cycles(2)
        looks[-2:] = [row] * 2
        seen_at.append((len(tags) - 1, row, expected[row].copy()))

    multiply(0, rows, 0)
    for _ in range(INSTRUCTIONS):
        count = int(rng.integers(1, min(rows, 12) + 1))
        first = int(rng.integers(0, rows - count + 1))
        multiply(first, count, int(rng.integers(2)))
        look(int(rng.integers(first, first + count)))
    for row in range(rows):
        look(row)
    cycles(2)

    inputs = rng.integers(-limit, limit, (len(tags), size))
    for (cycle, column), value in sums.items():
        inputs[cycle, column] = value
    seen = await bench.play({"tag": tags, "sums": pack_lanes(inputs, width), "row": looks}, ["done", "columns"])
    columns = unpack_lanes(seen["columns"], size, 32, signed=True)
    assert np.flatnonzero(seen["done"]).tolist() == ends
    for cycle, row, content in seen_at:
        assert np.array_equal(columns[cycle], content), (cycle, row)
