"""Row walker: every row of every range, in order, without a gap."""

from itertools import pairwise

import cocotb

from openmxu.rtl.host.row_walker import range_layout
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import pack

RANGES = 80


@cocotb.test()
@STALLS
async def rows_of_ranges(dut, idle, backpressure):
    bench = await Bench.start(dut, "row_walker")
    rng = random_generator()
    ranges, rows = bench.source("ranges", idle), bench.sink("rows", backpressure)
    places, width = CONFIG.unified_buffer_rows, CONFIG.unified_buffer_address_width
    layout = range_layout(width, range(places + 1))
    expected = []
    for _ in range(RANGES):
        count = int(rng.choice([1, 1, 2, 3, rng.integers(1, 20)]))
        first = int(rng.integers(0, places - count + 1))
        ranges.send(pack(layout, {"address": first, "rows": count, "is_one": count == 1}))
        expected += [first + row | (row == count - 1) << width for row in range(count)]
    await bench.until(lambda: len(rows.received) == len(expected))
    await bench.steps(4)
    assert rows.received == expected
    if idle == backpressure == 0:
        assert all(later == earlier + 1 for earlier, later in pairwise(rows.times))
