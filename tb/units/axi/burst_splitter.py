"""Burst splitter: the bursts of every request equal those of the model, and are legal in AXI."""

import random

import cocotb

from openmxu.rtl.axi.burst_splitter import split, split_burst_layout
from openmxu.rtl.common.interfaces import burst_layout
from openmxu.rtl.shell.interfaces import BURST_BEATS, PAGE_BYTES
from tb.bench import STALLS, Bench
from tb.models.payloads import pack, unpack
from tb.rack import AXI_ADDRESS_WIDTH, AXI_DATA_BYTES

REQUESTS = 60


def random_request(data_bytes: int) -> tuple[int, int]:
    """Address and beats of a request; many begin or end at a boundary."""
    top = 1 << AXI_ADDRESS_WIDTH
    address = random.randrange(0, top, random.choice([data_bytes, 1024, PAGE_BYTES]))
    beats = random.choice([1, 2, random.randrange(1, 20), random.randrange(1, 900), BURST_BEATS, 2 * BURST_BEATS])
    beats += random.choice([0, 0, -1, 1])
    return address, max(1, min(beats, (top - address) // data_bytes))


def request(address: int, beats: int) -> int:
    """The payload of a request."""
    return pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": address, "beats": beats})


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def bursts_of_requests(dut, data_bytes, idle, backpressure):
    bench = await Bench.start(dut, f"burst_splitter_{data_bytes}")
    offset = random.choice([0, PAGE_BYTES, 3 * PAGE_BYTES, (1 << AXI_ADDRESS_WIDTH) - PAGE_BYTES])
    bench.port("flush").value = 0
    bench.port("offset").value = offset
    expected = []
    requests, bursts = bench.source("requests", idle), bench.sink("bursts", backpressure)
    for _ in range(REQUESTS):
        address, beats = random_request(data_bytes)
        requests.send(request(address, beats))
        parts = split((address + offset) % (1 << AXI_ADDRESS_WIDTH), beats, data_bytes)
        expected += [(start % (1 << AXI_ADDRESS_WIDTH), length, start == parts[-1][0]) for start, length in parts]
    await bench.until(lambda: requests.is_empty and len(bursts.received) == len(expected))
    await bench.steps(4)
    got = [unpack(split_burst_layout(AXI_ADDRESS_WIDTH), payload) for payload in bursts.received]
    assert [(burst.addr, burst.len + 1, burst.last) for burst in got] == expected
    for burst in got:
        assert burst.addr // PAGE_BYTES == (burst.addr + burst.len * data_bytes) // PAGE_BYTES
    if idle == backpressure == 0:
        assert bench.cycle <= len(expected) + 8


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def flush_discards_the_rest(dut, data_bytes):
    bench = await Bench.start(dut, f"burst_splitter_{data_bytes}")
    bench.port("flush").value = 0
    bench.port("offset").value = 0
    allowed = 3
    requests, bursts = bench.source("requests"), bench.sink("bursts")
    bursts.may_take = lambda: len(bursts.received) < allowed
    requests.send(request(0, 5 * BURST_BEATS), request(0, 7))
    await bench.until(lambda: len(bursts.received) == allowed)
    await bench.steps(3)
    bench.port("flush").value = 1
    await bench.steps(3)
    allowed += 5  # only the one that is already offered may follow
    await bench.steps(5)
    assert len(bursts.received) == 4
    assert requests.is_empty
    bench.port("flush").value = 0
    requests.send(request(data_bytes, 1))
    await bench.steps(5)
    last = unpack(split_burst_layout(AXI_ADDRESS_WIDTH), bursts.received[-1])
    assert (len(bursts.received), last.addr, last.len, last.last) == (5, data_bytes, 0, 1)
