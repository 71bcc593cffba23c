"""Read manager: every client gets the beats of its own requests, in order, with any timing of the bus."""

import random
from collections import Counter

import cocotb
import numpy as np

from openmxu.rtl.common.interfaces import burst_layout
from openmxu.rtl.shell.interfaces import PAGE_BYTES, block_beats, read_error_layout
from tb.axi.memories import ReadChannels
from tb.bench import STALLS, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.rack import AXI_ADDRESS_WIDTH, AXI_CLIENTS, AXI_DATA_BYTES

REQUESTS = 10
LATENCY = 100

_TOP = 1 << AXI_ADDRESS_WIDTH


class Client:
    """A client: its requests and the expected data. A client without an offset requests whole bursts."""

    def __init__(self, bench, name, memory, data_bytes, offset, idle, backpressure) -> None:
        self._is_whole = offset is None
        if not self._is_whole:
            bench.port(f"offset_{name}").value = offset
        offset = offset or 0
        self._memory, self._data_bytes, self._offset = memory, data_bytes, offset
        self.requests = bench.source(f"client_{name}__request", idle)
        self.data = bench.sink(f"client_{name}__data", backpressure)
        self.expected: list[int] = []

    def ask(self, first: int, beats: int) -> None:
        """Send a request for the bytes of the memory from ``first`` on."""
        size = self._data_bytes
        if self._is_whole:
            block = block_beats(size)
            beats = min(beats, block - first // size % block)
        address = (first - self._offset) % _TOP
        self.requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": address, "beats": beats}))
        content = self._memory[first : first + beats * size].reshape(-1, size)
        self.expected += [int.from_bytes(beat.tobytes(), "little") for beat in content]

    def ask_anything(self) -> None:
        """Send a random request."""
        first = random.randrange(0, _TOP, self._data_bytes)
        beats = random.choice([1, 2, random.randrange(1, 40), random.randrange(1, 600)])
        self.ask(first, min(beats, (_TOP - first) // self._data_bytes))

    @property
    def is_served(self) -> bool:
        """Whether all data has arrived."""
        return self.requests.is_empty and len(self.data.received) >= len(self.expected)


async def start(dut, data_bytes, idle, backpressure, latency=1):
    """A bench with a memory and two clients."""
    bench = await Bench.start(dut, f"read_manager_{data_bytes}")
    bench.port("flush").value = 0
    memory = random_generator().integers(0, 256, _TOP, np.uint8)
    channels = ReadChannels(bench, "bus", memory, AXI_ADDRESS_WIDTH, data_bytes, max(idle, backpressure), latency)
    offsets = (None, random.randrange(0, _TOP, PAGE_BYTES))
    clients = [
        Client(bench, name, memory, data_bytes, offset, idle, backpressure)
        for name, offset in zip(AXI_CLIENTS, offsets, strict=True)
    ]
    return bench, channels, clients


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def clients_get_their_own_data(dut, data_bytes, idle, backpressure):
    bench, channels, clients = await start(dut, data_bytes, idle, backpressure)
    channels.error_probability = 0.2
    errors = bench.sink("errors")
    for client in clients:
        for _ in range(REQUESTS):
            client.ask_anything()
    await bench.until(lambda: all(client.is_served for client in clients), 200_000)
    await bench.steps(4)
    for client in clients:
        assert client.data.received == client.expected
    assert channels.is_idle
    assert int(bench.port("idle").value)
    reported = [unpack(read_error_layout(AXI_ADDRESS_WIDTH, len(AXI_CLIENTS)), payload) for payload in errors.received]
    assert [(error.addr, error.resp) for error in reported] == channels.errors
    assert Counter(error.client for error in reported).keys() <= {0, 1}


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def another_client_does_not_wait_long(dut, data_bytes):
    """However long a request is, another client waits only for the beats already requested from the bus."""
    bench, _, (first, second) = await start(dut, data_bytes, 0.0, 0.0)
    second.ask(0, 3000 if data_bytes < 64 else 2000)
    await bench.steps(50)
    first.ask(0, 1)
    begin = bench.cycle
    await bench.until(lambda: first.is_served)
    assert bench.cycle - begin < 128 + 256 + 16
    await bench.until(lambda: second.is_served)
    assert second.data.received == second.expected


@cocotb.test()
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def sequential_reads_fill_the_bus(dut, data_bytes):
    """At least 95 % of a beat per cycle, from a memory with a latency of 100 cycles."""
    bench, _, (_, client) = await start(dut, data_bytes, 0.0, 0.0, LATENCY)
    beats = 4000 if data_bytes < 64 else 2000
    client.ask(0, beats)
    await bench.until(lambda: client.is_served)
    cycles = client.data.times[-1] - client.data.times[0] + 1
    cocotb.log.info("%d-byte beats: %.4f of one per cycle", data_bytes, beats / cycles)
    assert beats / cycles >= 0.95
    assert client.data.received == client.expected


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES)
async def flush(dut, data_bytes, idle, backpressure):
    """Data in flight at a flush is dropped, and later requests are served correctly."""
    bench, channels, clients = await start(dut, data_bytes, idle, backpressure, 5)
    for _ in range(3):
        for client in clients:
            client.ask(0, random.randrange(1, 400))
            client.ask(0, 3)
        await bench.steps(random.randrange(1, 200))
        bench.port("flush").value = 1
        for client in clients:
            client.data.release()
        await bench.until(lambda: all(client.requests.is_empty for client in clients))
        await bench.steps(3)
        await bench.until(lambda: int(bench.port("idle").value) == 1)
        assert channels.is_idle
        bench.port("flush").value = 0
        await bench.step()
        for client in clients:
            client.expected = client.data.received.copy()
            client.ask_anything()
            client.ask_anything()
        await bench.until(lambda: all(client.is_served for client in clients))
        for client in clients:
            assert client.data.received == client.expected
