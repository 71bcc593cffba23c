"""Register slice: everything comes out in order, one payload per cycle if both sides allow it."""

import cocotb

from tb.bench import STALLS, Bench, random_generator

COUNT = 200


@cocotb.test()
@STALLS
async def order(dut, idle, backpressure):
    bench = await Bench.start(dut, "register_slice")
    payloads = random_generator().integers(0, 256, COUNT).tolist()
    source, sink = bench.source("input", idle), bench.sink("output", backpressure)
    source.send(*payloads)
    await bench.until(lambda: len(sink.received) == COUNT)
    await bench.steps(3)
    assert sink.received == payloads
    if idle == backpressure == 0:
        assert bench.cycle <= COUNT + 8


@cocotb.test()
async def holds_two(dut):
    bench = await Bench.start(dut, "register_slice")
    source, sink = bench.source("input"), bench.sink("output", may_take=lambda: False)
    source.send(*range(5))
    await bench.steps(12)
    assert source.sent == [0, 1]
    assert sink.received == []
