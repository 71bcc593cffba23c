"""Stream registers: payloads come out in order, at the documented rate if neither side stalls."""

import cocotb

from tb.bench import STALLS, Bench, random_generator

COUNT = 200

CYCLES = {"register_slice": 1, "stream_register": 1, "register_slice_half": 2}
"""Cycles per payload."""

PLACES = {"register_slice": 2, "stream_register": 1, "register_slice_half": 1}


@cocotb.test()
@STALLS
@cocotb.parametrize(name=list(CYCLES))
async def order(dut, name, idle, backpressure):
    bench = await Bench.start(dut, name)
    payloads = random_generator().integers(0, 256, COUNT).tolist()
    source, sink = bench.source("input", idle), bench.sink("output", backpressure)
    source.send(*payloads)
    await bench.until(lambda: len(sink.received) == COUNT)
    await bench.steps(3)
    assert sink.received == payloads
    if idle == backpressure == 0:
        assert bench.cycle <= COUNT * CYCLES[name] + 8


@cocotb.test()
@cocotb.parametrize(name=list(PLACES))
async def fills_up(dut, name):
    bench = await Bench.start(dut, name)
    source, sink = bench.source("input"), bench.sink("output", may_take=lambda: False)
    source.send(*range(5))
    await bench.steps(12)
    assert source.sent == list(range(PLACES[name]))
    assert sink.received == []
