"""Write manager: exactly the bytes selected by the strobes are written, and every request is answered."""

import random

import cocotb
import numpy as np

from openmxu.rtl.common.interfaces import burst_layout, write_beat_layout
from openmxu.rtl.shell.interfaces import PAGE_BYTES, write_error_layout
from tb.axi.memories import WriteChannels
from tb.bench import STALLS, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.rack import AXI_ADDRESS_WIDTH, AXI_DATA_BYTES

REQUESTS = 10
LATENCY = 100

_TOP = 1 << AXI_ADDRESS_WIDTH


class Writer:
    """The unit's client, and the expected contents of the memory."""

    def __init__(self, bench, data_bytes, memory, offset, idle, backpressure) -> None:
        bench.port("offset").value = offset
        self._data_bytes, self._offset = data_bytes, offset
        self.expected = memory.copy()
        self.sent = 0
        self.requests = bench.source("port__request", idle)
        self.data = bench.source("port__data", idle)
        self.done = bench.sink("port__done", backpressure)

    def write(self, first: int, beats: int) -> None:
        """Write random bytes from ``first`` on; about a third of the beats have random strobes."""
        size = self._data_bytes
        address = (first - self._offset) % _TOP
        self.requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": address, "beats": beats}))
        for index in range(beats):
            full = (1 << size) - 1
            strobe = random.choice([full, full, random.getrandbits(size)])
            content = random.getrandbits(8 * size)
            last = index == beats - 1
            fields = {"data": content, "strobe": strobe, "last": last}
            self.data.send(pack(write_beat_layout(size), fields))
            for byte in range(size):
                if strobe >> byte & 1:
                    self.expected[first + index * size + byte] = content >> 8 * byte & 0xFF
        self.sent += 1

    def write_anything(self) -> None:
        """Write random beats at a random address."""
        first = random.randrange(0, _TOP, self._data_bytes)
        beats = random.choice([1, 2, random.randrange(1, 40), random.randrange(1, 500)])
        self.write(first, min(beats, (_TOP - first) // self._data_bytes))


async def start(dut, data_bytes, idle, backpressure, latency=1):
    """A bench with a memory and a writer."""
    bench = await Bench.start(dut, f"write_manager_{data_bytes}")
    bench.port("flush").value = 0
    memory = random_generator().integers(0, 256, _TOP, np.uint8)
    channels = WriteChannels(bench, "bus", memory, AXI_ADDRESS_WIDTH, data_bytes, max(idle, backpressure), latency)
    offset = random.randrange(0, _TOP, PAGE_BYTES)
    return bench, channels, Writer(bench, data_bytes, memory, offset, idle, backpressure)


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def bytes_arrive(dut, data_bytes, idle, backpressure):
    bench, channels, writer = await start(dut, data_bytes, idle, backpressure)
    channels.error_probability = 0.2
    errors = bench.sink("errors")
    for _ in range(REQUESTS):
        writer.write_anything()
    await bench.until(lambda: len(writer.done.received) == REQUESTS, 100_000)
    await bench.steps(10)
    assert np.array_equal(channels.memory, writer.expected)
    assert channels.is_idle
    assert int(bench.port("idle").value)
    assert len(writer.done.received) == REQUESTS
    reported = [unpack(write_error_layout(AXI_ADDRESS_WIDTH), payload) for payload in errors.received]
    assert [(error.addr, error.resp) for error in reported] == channels.errors


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def data_does_not_wait_for_addresses(dut, data_bytes):
    """A bus may accept addresses only after data, or data only after addresses."""
    bench, channels, writer = await start(dut, data_bytes, 0.0, 0.0)
    beats, addresses = channels.beats, channels.addresses
    writer.write(0, 700)
    writer.write(64, 3)
    addresses.may_take = lambda: len(beats.received) > sum(length for _, length in channels.bursts)
    await bench.until(lambda: len(writer.done.received) == 2, 5000)
    addresses.may_take = lambda: True
    beats.may_take = lambda: sum(length for _, length in channels.bursts) > len(beats.received)
    writer.write(128, 700)
    await bench.until(lambda: len(writer.done.received) == 3, 5000)
    assert np.array_equal(channels.memory, writer.expected)


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def sequential_writes_fill_the_bus(dut, data_bytes):
    """At least 95 % of a beat per cycle, to a memory with a latency of 100 cycles."""
    bench, channels, writer = await start(dut, data_bytes, 0.0, 0.0, LATENCY)
    beats = 4000 if data_bytes < 64 else 2000
    writer.write(0, beats)
    await bench.until(lambda: writer.done.received)
    times = channels.beats.times
    cocotb.log.info("%d-byte beats: %.4f of one per cycle", data_bytes, beats / (times[-1] - times[0] + 1))
    assert beats / (times[-1] - times[0] + 1) >= 0.95
    assert np.array_equal(channels.memory, writer.expected)


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def flush(dut, data_bytes, idle, backpressure):
    """Bursts in flight at a flush end without writing further bytes, and later requests are written correctly."""
    bench, channels, writer = await start(dut, data_bytes, idle, backpressure, 5)
    for _ in range(3):
        for _ in range(3):
            writer.write(random.randrange(0, _TOP // 2, data_bytes), random.randrange(1, 400))
        await bench.steps(random.randrange(1, 200))
        bench.port("flush").value = 1
        writer.done.release()
        await bench.until(lambda: writer.requests.is_empty)
        writer.data.clear()
        first = len(channels.beats.received)
        await bench.steps(3)
        await bench.until(lambda: int(bench.port("idle").value) == 1)
        assert channels.is_idle
        # Two beats may have been queued before the flush.
        rest = [unpack(write_beat_layout(data_bytes), payload) for payload in channels.beats.received[first + 2 :]]
        assert all(beat.strobe == 0 for beat in rest)
        bench.port("flush").value = 0
        await bench.step()
        writer.expected = channels.memory.copy()
        count = len(writer.done.received)
        writer.write_anything()
        await bench.until(lambda count=count: len(writer.done.received) > count)
        assert np.array_equal(channels.memory, writer.expected)
