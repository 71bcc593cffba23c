"""Run walker: the places of every run's rows, in order, without a gap."""

from itertools import pairwise

import cocotb

from openmxu.rtl.common.run_walker import place_layout, run_layout
from tb.bench import STALLS, Bench, random_generator
from tb.models.payloads import pack
from tb.rack import LANE_WIDTH, ROWS_WIDTH

RUNS = 80


@cocotb.test()
@STALLS
async def places_of_runs(dut, idle, backpressure):
    bench = await Bench.start(dut, "run_walker")
    rng = random_generator()
    runs, places = bench.source("runs", idle), bench.sink("places", backpressure)
    layout, lanes = place_layout(LANE_WIDTH), 1 << LANE_WIDTH
    expected = []
    for _ in range(RUNS):
        rows, lane = int(rng.choice([1, 2, rng.integers(1, 1 << ROWS_WIDTH)])), int(rng.integers(0, lanes))
        runs.send(pack(run_layout(ROWS_WIDTH, LANE_WIDTH), {"rows": rows, "lane": lane}))
        expected += [pack(layout, {"lane": (lane + row) % lanes, "last": row == rows - 1}) for row in range(rows)]
    await bench.until(lambda: len(places.received) == len(expected))
    await bench.steps(4)
    assert places.received == expected
    if idle == backpressure == 0:
        assert all(later == earlier + 1 for earlier, later in pairwise(places.times))
