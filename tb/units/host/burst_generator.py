"""Burst generator: the bursts of every transfer, and the rows in each of them."""

import cocotb
import numpy as np

from openmxu.rtl.common.interfaces import burst_layout
from openmxu.rtl.host.burst_generator import BurstGenerator
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import unpack
from tb.models.transfers import random_transfers

TRANSFERS = 60


@cocotb.test()
@STALLS
async def bursts_of_transfers(dut, idle, backpressure):
    bench = await Bench.start(dut, "burst_generator")
    transfers = random_transfers(random_generator(), TRANSFERS, np.zeros(1000, np.uint8))
    commands = bench.source("commands", idle)
    requests, runs = bench.sink("requests", backpressure), bench.sink("runs", backpressure)
    commands.send(*(transfer.payload for transfer in transfers))
    bursts = [burst for transfer in transfers for burst in transfer.bursts]
    await bench.until(lambda: commands.is_empty)
    await bench.until(lambda: len(requests.received) == len(runs.received) == len(bursts))
    await bench.steps(5)

    got = [unpack(burst_layout(CONFIG.host_address_width), payload) for payload in requests.received]
    assert [(burst.address, burst.beats) for burst in got] == bursts

    layout = BurstGenerator(CONFIG).runs.p.shape()
    expected = []
    for transfer in transfers:
        rows = [1] * transfer.rows if transfer.alternate else [transfer.rows]
        lanes = [address % max(CONFIG.host_data_bytes, CONFIG.size) // CONFIG.size for address in transfer.addresses]
        expected += list(zip(rows, lanes, strict=False))
    got = [unpack(layout, payload) for payload in runs.received]
    assert [(run.rows, run.lane) for run in got] == expected
