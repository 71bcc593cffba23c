"""Watchdog: expires after more cycles without progress than the limit, never earlier, and stays expired."""

import cocotb

from tb.bench import Bench, random_generator
from tb.rack import WATCHDOG_GRAIN

CYCLES = 2_000
LATENCY = 3
"""Cycles from the first cycle beyond the limit until `expired` is set."""


@cocotb.test()
@cocotb.parametrize(limit=[1, 2, 7, 30])
async def expires_in_time(dut, limit):
    rng = random_generator()
    works = (rng.random(CYCLES) < 0.98).astype(int).tolist()
    # Roughly one cycle in some hundreds completes a run that is longer than the limit.
    goes_on = (rng.random(CYCLES) < 4 / (4 + limit)).astype(int).tolist()
    bench = await Bench.start(dut, "watchdog")
    inputs = {"works": works, "goes_on": goes_on, "limit": [limit] * CYCLES}
    expired = (await bench.play(inputs, ["expired"]))["expired"]
    expected, standing, too_many = [], 0, False
    for working, going in zip(works, goes_on, strict=True):
        standing = standing + 1 if working and not going else 0
        too_many |= standing > limit
        expected.append(int(too_many))
    assert any(expected)
    assert expired == [0] * LATENCY + expected[:-LATENCY]


@cocotb.test()
@cocotb.parametrize(limit=[1, 7, 30])
async def a_coarse_watchdog_expires_within_a_grain(dut, limit):
    bench = await Bench.start(dut, "coarse_watchdog")
    cycles = limit + WATCHDOG_GRAIN + 1 + LATENCY
    for runs in range(3):
        await bench.reset()
        works = ([1] * limit + [0]) * runs + [1] * cycles
        inputs = {"works": works, "goes_on": [0] * len(works), "limit": [limit] * len(works)}
        expired = (await bench.play(inputs, ["expired"]))["expired"]
        first = expired.index(1) - runs * (limit + 1) - LATENCY
        assert limit <= first < limit + WATCHDOG_GRAIN


@cocotb.test()
async def restarts_after_a_reset(dut):
    bench = await Bench.start(dut, "watchdog")
    for _ in range(3):
        await bench.reset()
        played = await bench.play({"limit": [5] * 12, "works": [1] * 12, "goes_on": [0] * 12}, ["expired"])
        assert played["expired"] == [0] * (5 + LATENCY) + [1] * (7 - LATENCY)
