"""A stream whose payload changes while it is not accepted. A sink checks ports that the test itself drives."""

import cocotb

from tb.bench import Bench


@cocotb.test()
async def payload_changes(dut):
    bench = await Bench.start(dut, "stream_fifo")
    bench.sink("input", may_take=lambda: False)
    bench.port("input__valid").value = 1
    for payload in range(4):
        bench.port("input__payload").value = payload
        await bench.step()
