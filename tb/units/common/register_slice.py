"""Register slices: everything comes out in order, at full rate one payload per cycle if both sides allow it."""

import cocotb

from tb.bench import STALLS, Bench, random_generator

COUNT = 200
RATES = {"register_slice": 1, "register_slice_half": 2}
"""The units, and the cycles that a payload takes at least."""


@cocotb.test()
@STALLS
@cocotb.parametrize(unit=list(RATES))
async def order(dut, idle, backpressure, unit):
    bench = await Bench.start(dut, unit)
    payloads = random_generator().integers(0, 256, COUNT).tolist()
    source, sink = bench.source("input", idle), bench.sink("output", backpressure)
    source.send(*payloads)
    await bench.until(lambda: len(sink.received) == COUNT)
    await bench.steps(3)
    assert sink.received == payloads
    if idle == backpressure == 0:
        assert bench.cycle <= RATES[unit] * COUNT + 8


@cocotb.test()
@cocotb.parametrize((("unit", "room"), [("register_slice", 2), ("register_slice_half", 1)]))
async def holds_what_it_has_room_for(dut, unit, room):
    bench = await Bench.start(dut, unit)
    source, sink = bench.source("input"), bench.sink("output", may_take=lambda: False)
    source.send(*range(5))
    await bench.steps(12)
    assert source.sent == list(range(room))
    assert sink.received == []
