"""One test passes, the other fails."""

import cocotb

from tb.bench import Bench


@cocotb.test()
async def passes(dut):
    bench = await Bench.start(dut, "stream_fifo")
    await bench.steps(2)


@cocotb.test()
async def fails(dut):
    bench = await Bench.start(dut, "stream_fifo")
    await bench.steps(2)
    assert int(bench.port("level").value) == 1
