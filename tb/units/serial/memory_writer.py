"""Memory writer: writes exactly the bytes selected by strobes, completes each request once, and reports errors."""

import random

import cocotb
import numpy as np

from openmxu.arch.serial import DATA_BYTES, MessageKind, ReplyStatus
from openmxu.driver.serial_frames import decode_message, encode_message
from openmxu.rtl.common.interfaces import burst_layout, write_beat_layout
from openmxu.rtl.serial.messages import memory_error_layout
from tb.bench import STALLS, Bench, random_generator
from tb.models.messages import collect, payloads
from tb.models.payloads import pack, unpack
from tb.rack import AXI_ADDRESS_WIDTH, AXI_DATA_BYTES

REQUESTS = 20
TOP = 1 << AXI_ADDRESS_WIDTH

REPLIES = {
    encode_message(MessageKind.HOST_WRITTEN, status=ReplyStatus.ERROR): ReplyStatus.ERROR,
    encode_message(MessageKind.HOST_WRITTEN, status=ReplyStatus.NO_MEMORY): ReplyStatus.NO_MEMORY,
    encode_message(MessageKind.HOST_WRITTEN, status=0x40): ReplyStatus.ERROR,
    encode_message(MessageKind.HOST_WRITTEN, b"\0", status=ReplyStatus.OKAY): ReplyStatus.ERROR,
    bytes([MessageKind.HOST_WRITTEN]): ReplyStatus.ERROR,
}
"""Replies that do not mean success, and the status reported for each."""


class Server:
    """The other end: executes the writes that messages request."""

    def __init__(self, bench, memory, idle, backpressure, failing) -> None:
        self._memory, self._failing = memory, failing
        self._replies = bench.source("replies", idle)
        self.errors: list[tuple[int, int]] = []
        _, self.messages = collect(bench, "messages", backpressure, self._write)

    def _write(self, contents: bytes) -> None:
        message = decode_message(contents)
        assert message.kind is MessageKind.WRITE_HOST
        address = message.fields["address"]
        assert 0 < len(message.data) <= DATA_BYTES
        self._memory[address : address + len(message.data)] = np.frombuffer(message.data, np.uint8)
        reply = encode_message(MessageKind.HOST_WRITTEN, status=ReplyStatus.OKAY)
        if random.random() < self._failing:
            reply, status = random.choice(list(REPLIES.items()))
            self.errors.append((address, status))
        self._replies.send(*payloads(reply))


def strobes(count: int, pattern: str) -> np.ndarray:
    """Which of ``count`` bytes are written."""
    if pattern == "all":
        return np.ones(count, bool)
    if pattern == "none":
        return np.zeros(count, bool)
    if pattern == "run":
        result = np.zeros(count, bool)
        first = random.randrange(count)
        result[first : random.randrange(first, count) + 1] = True
        return result
    return random_generator().random(count) < 0.5


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES, failing=[0.0, 0.4])
async def writes(dut, data_bytes, failing, idle, backpressure):
    bench = await Bench.start(dut, f"memory_writer_{data_bytes}")
    got, expected = np.zeros(TOP, np.uint8), np.zeros(TOP, np.uint8)
    offset = random.randrange(0, TOP, 4096)
    bench.port("flush").value = 0
    bench.port("offset").value = offset
    server = Server(bench, got, idle, backpressure, failing)
    errors = bench.sink("errors")
    requests, data = bench.source("port__request", idle), bench.source("port__data", idle)
    done = bench.sink("port__done", backpressure)
    runs = 0
    for number in range(REQUESTS):
        count = random.choice([1, 2, random.randrange(1, 1 + 700 // data_bytes)])
        first = random.randrange(0, TOP - count * data_bytes, data_bytes)
        content = random_generator().integers(0, 256, count * data_bytes, np.uint8)
        written = strobes(len(content), ("all", "none", "run", "random")[number % 4])
        expected[first : first + len(content)][written] = content[written]
        runs += written.any() and number % 4 < 3 and 1 + (int(written.sum()) - 1) // DATA_BYTES
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": (first - offset) % TOP, "beats": count}))
        for beat in range(count):
            part = slice(beat * data_bytes, (beat + 1) * data_bytes)
            data.send(
                pack(
                    write_beat_layout(data_bytes),
                    {
                        "data": int.from_bytes(content[part].tobytes(), "little"),
                        "strobe": int.from_bytes(np.packbits(written[part], bitorder="little").tobytes(), "little"),
                        "last": beat == count - 1,
                    },
                )
            )
    await bench.until(lambda: len(done.received) == REQUESTS, 400_000)
    await bench.until(lambda: int(bench.port("idle").value) == 1)
    await bench.steps(3)
    assert np.array_equal(got, expected)
    assert len(server.messages) >= runs
    reported = [unpack(memory_error_layout(AXI_ADDRESS_WIDTH), payload) for payload in errors.received]
    assert [(error.addr, error.resp) for error in reported] == server.errors
    assert bool(server.errors) == bool(failing)


@cocotb.test()
@STALLS
async def long_runs_fill_messages(dut, idle, backpressure):
    """A request of whole beats takes as few messages as possible."""
    bench = await Bench.start(dut, "memory_writer_16")
    got = np.zeros(TOP, np.uint8)
    bench.port("flush").value = 0
    bench.port("offset").value = 0
    server = Server(bench, got, idle, backpressure, 0.0)
    bench.sink("errors")
    requests, data = bench.source("port__request", idle), bench.source("port__data", idle)
    done = bench.sink("port__done", backpressure)
    requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": 32, "beats": 33}))
    data.send(*(pack(write_beat_layout(16), {"data": 0, "strobe": 0xFFFF, "last": beat == 32}) for beat in range(33)))
    await bench.until(lambda: len(done.received) == 1)
    lengths = [len(decode_message(message).data) for message in server.messages]
    assert lengths == [DATA_BYTES, DATA_BYTES, 16]


@cocotb.test()
@STALLS
async def flush(dut, idle, backpressure):
    """After a flush at any time the unit becomes idle, and later requests are served correctly."""
    bench = await Bench.start(dut, "memory_writer_16")
    got = np.zeros(TOP, np.uint8)
    bench.port("flush").value = 0
    bench.port("offset").value = 0
    Server(bench, got, idle, backpressure, 0.0)
    bench.sink("errors")
    requests, data = bench.source("port__request", idle), bench.source("port__data", idle)
    done = bench.sink("port__done", backpressure)
    for turn in range(8):
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": 0, "beats": 40}))
        beat = {"data": 0, "strobe": 0xFFFF}
        data.send(*(pack(write_beat_layout(16), beat) for _ in range(random.choice([3, 40]))))
        await bench.steps(random.randrange(1, 1500))
        bench.port("flush").value = 1
        data.clear()
        done.release()
        await bench.until(lambda: requests.is_empty)
        await bench.steps(2)
        await bench.until(lambda: int(bench.port("idle").value) == 1)
        bench.port("flush").value = 0
        await bench.step()
        done.received.clear()
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": 4096, "beats": 1}))
        data.send(pack(write_beat_layout(16), {"data": turn + 1, "strobe": 1, "last": 1}))
        await bench.until(lambda: len(done.received) == 1)
        assert got[4096] == turn + 1
