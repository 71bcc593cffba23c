"""Memory reader: delivers the beats of every request, with messages of limited length, and reports all errors."""

import random
from collections import deque

import cocotb

from openmxu.arch.serial import DATA_BYTES, MessageKind, ReplyStatus
from openmxu.driver.serial_frames import decode_message, encode_message
from openmxu.rtl.common.interfaces import burst_layout
from openmxu.rtl.serial.messages import memory_error_layout
from tb.bench import STALLS, Bench, random_generator
from tb.models.messages import collect, payloads
from tb.models.payloads import pack, unpack
from tb.rack import AXI_ADDRESS_WIDTH, AXI_DATA_BYTES

REQUESTS = 25
TOP = 1 << AXI_ADDRESS_WIDTH

FAILURES = ("no memory", "error", "status only", "kind only", "too short", "too long", "unknown status")


class Server:
    """The other end: answers each message, sometimes incorrectly."""

    def __init__(self, bench, memory, data_bytes, idle, backpressure, failing) -> None:
        self._memory, self._failing, self._data_bytes = memory, failing, data_bytes
        self._replies = bench.source("replies", idle)
        self.errors: list[tuple[int, int]] = []
        self.wrong: deque[bool] = deque()
        self.first_missing: list[int] = []
        _, self.asked = collect(bench, "requests", backpressure, self._answer)

    def _answer(self, contents: bytes) -> None:
        message = decode_message(contents)
        assert message.kind is MessageKind.READ_HOST
        address, length = message.fields["address"], message.fields["length"]
        assert 0 < length <= DATA_BYTES
        data = self._memory[address : address + length].tobytes()
        reply = encode_message(MessageKind.HOST_DATA, data, status=ReplyStatus.OKAY)
        fails = random.random() < self._failing
        if fails:
            what, status = random.choice(FAILURES), ReplyStatus.ERROR
            if what == "no memory":
                status = ReplyStatus.NO_MEMORY
                reply = encode_message(MessageKind.HOST_DATA, random.choice([b"", data]), status=status)
            elif what == "error":
                reply = encode_message(MessageKind.HOST_DATA, data, status=status)
            elif what == "unknown status":
                reply = encode_message(MessageKind.HOST_DATA, data, status=random.choice([1, 4, 0x83]))
            elif what == "status only":
                reply = reply[:2]
            elif what == "kind only":
                reply = reply[:1]
            elif what == "too short":
                reply = reply[: random.randrange(3, len(reply))]
            else:
                reply += bytes(random.randrange(1, 100))
            self.errors.append((address, status))
            # If data is too short, the beats that came are right; excess data is reported when it comes.
            right = 0 if len(reply) < 2 or reply[1] else min((len(reply) - 2) // self._data_bytes, length)
            self.first_missing.append(len(self.wrong) + right)
        self.wrong.extend([fails] * (length // self._data_bytes))
        self._replies.send(*payloads(reply))


@cocotb.test()
@STALLS
@cocotb.parametrize(data_bytes=AXI_DATA_BYTES, failing=[0.0, 0.4])
async def reads(dut, data_bytes, failing, idle, backpressure):
    bench = await Bench.start(dut, f"memory_reader_{data_bytes}")
    memory = random_generator().integers(0, 256, TOP, "uint8")
    offset = random.randrange(0, TOP, 4096)
    bench.port("flush").value = 0
    bench.port("offset").value = offset
    server = Server(bench, memory, data_bytes, idle, backpressure, failing)
    errors = bench.sink("errors")
    requests, beats = bench.source("port__request", idle), bench.sink("port__data", backpressure)
    expected = []
    for _ in range(REQUESTS):
        count = random.choice([1, 2, DATA_BYTES // data_bytes, random.randrange(1, 1 + 700 // data_bytes)])
        first = random.randrange(0, TOP - count * data_bytes, data_bytes)
        address = (first - offset) % TOP
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": address, "beats": count}))
        content = memory[first : first + count * data_bytes].reshape(-1, data_bytes)
        expected += [int.from_bytes(beat.tobytes(), "little") for beat in content]
    await bench.until(lambda: len(beats.received) == len(expected), 200_000)
    await bench.until(lambda: int(bench.port("idle").value) == 1)
    await bench.steps(3)
    got = zip(beats.received, expected, server.wrong, strict=True)
    assert all(beat == right for beat, right, wrong in got if not wrong)
    reported = [unpack(memory_error_layout(AXI_ADDRESS_WIDTH), payload) for payload in errors.received]
    assert [(error.addr, error.resp) for error in reported] == server.errors
    assert bool(server.errors) == bool(failing)
    for time, missing in zip(errors.times, server.first_missing, strict=True):
        assert missing >= len(beats.times) or time <= beats.times[missing], "reported after the first missing beat"


@cocotb.test()
@STALLS
async def flush(dut, idle, backpressure):
    """Data in flight at a flush is dropped, and later requests are served correctly."""
    bench = await Bench.start(dut, "memory_reader_16")
    memory = random_generator().integers(0, 256, TOP, "uint8")
    bench.port("flush").value = 0
    bench.port("offset").value = 0
    Server(bench, memory, 16, idle, backpressure, 0.0)
    bench.sink("errors")
    requests, beats = bench.source("port__request", idle), bench.sink("port__data", backpressure)
    for _ in range(8):
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": 0, "beats": 40}))
        await bench.steps(random.randrange(1, 1500))
        bench.port("flush").value = 1
        beats.release()
        await bench.until(lambda: requests.is_empty)
        await bench.steps(2)
        await bench.until(lambda: int(bench.port("idle").value) == 1)
        bench.port("flush").value = 0
        await bench.step()
        beats.received.clear()
        requests.send(pack(burst_layout(AXI_ADDRESS_WIDTH), {"address": 256, "beats": 20}))
        await bench.until(lambda: len(beats.received) == 20)
        assert beats.received == [
            int.from_bytes(memory[place : place + 16].tobytes(), "little") for place in range(256, 576, 16)
        ]
