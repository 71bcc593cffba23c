"""Stream FIFO: payloads come out in order, and the level is the number of payloads held."""

import cocotb

from tb.bench import STALLS, Bench, random_generator
from tb.rack import FIFO_DEPTHS

COUNT = 300


@cocotb.test()
@STALLS
@cocotb.parametrize(depth=FIFO_DEPTHS)
async def order_and_level(dut, depth, idle, backpressure):
    bench = await Bench.start(dut, f"stream_fifo_{depth}")
    payloads = random_generator().integers(0, 256, COUNT).tolist()
    source, sink = bench.source("input", idle), bench.sink("output", backpressure)
    level = bench.port("level")
    source.send(*payloads)
    while len(sink.received) < COUNT:
        held = len(source.sent) - len(sink.received)  # before this cycle
        await bench.step()
        assert int(level.value) == held <= depth
        assert bench.cycle < 20 * COUNT
    assert sink.received == payloads


@cocotb.test()
@cocotb.parametrize(depth=FIFO_DEPTHS)
async def fills_up(dut, depth):
    bench = await Bench.start(dut, f"stream_fifo_{depth}")
    source, sink = bench.source("input"), bench.sink("output", may_take=lambda: False)
    source.send(*range(2 * depth))
    await bench.steps(4 * depth + 4)
    assert source.sent == list(range(depth))
    assert sink.received == []
