"""A stream that withdraws what it has offered."""

import cocotb

from tb.bench import Bench


@cocotb.test()
async def valid_falls(dut):
    bench = await Bench.start(dut, "stream_fifo")
    bench.sink("input", may_take=lambda: False)
    bench.port("input__payload").value = 0
    for valid in (0, 1, 0, 0):
        bench.port("input__valid").value = valid
        await bench.step()
