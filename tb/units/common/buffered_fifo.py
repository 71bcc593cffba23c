"""Buffered FIFO: payloads come out in order, each a cycle after it came at the earliest."""

import cocotb

from tb.bench import STALLS, Bench, random_generator
from tb.rack import BUFFERED_FIFO_DEPTH

COUNT = 250


@cocotb.test()
@STALLS
async def order(dut, idle, backpressure):
    bench = await Bench.start(dut, "buffered_fifo")
    payloads = random_generator().integers(0, 256, COUNT).tolist()
    source, sink = bench.source("input", idle), bench.sink("output", backpressure)
    source.send(*payloads)
    while len(sink.received) < COUNT:
        await bench.step()
        assert bench.cycle < 20 * COUNT
    assert sink.received == payloads


@cocotb.test()
async def leaves_in_the_next_cycle(dut):
    bench = await Bench.start(dut, "buffered_fifo")
    source, sink = bench.source("input"), bench.sink("output")
    source.send(*range(COUNT))
    while len(sink.received) < COUNT:
        assert len(source.sent) - len(sink.received) <= 1
        await bench.step()
    assert sink.received == list(range(COUNT))


@cocotb.test()
async def fills_up(dut):
    bench = await Bench.start(dut, "buffered_fifo")
    source, sink = bench.source("input"), bench.sink("output", may_take=lambda: False)
    source.send(*range(2 * BUFFERED_FIFO_DEPTH))
    await bench.steps(4 * BUFFERED_FIFO_DEPTH)
    assert source.sent == list(range(BUFFERED_FIFO_DEPTH))
    assert sink.received == []
