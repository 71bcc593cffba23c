"""Register port: well-formed messages become accesses, in order, and reads are answered."""

import random

import cocotb

from openmxu.arch.registers import ADDRESS_WIDTH
from openmxu.arch.serial import MessageKind
from openmxu.driver.serial_frames import encode_message
from openmxu.rtl.shell.interfaces import access_layout
from tb.bench import STALLS, Bench
from tb.models.messages import collect, payloads
from tb.models.payloads import unpack

COUNT = 80


@cocotb.test()
@STALLS
async def accesses(dut, idle, backpressure):
    bench = await Bench.start(dut, "register_port")
    source, responses = bench.source("messages", idle), bench.source("responses", idle)
    _, answers = collect(bench, "answers", backpressure)
    values = []

    def answer(payload):
        if not unpack(access_layout(ADDRESS_WIDTH), payload).write:
            values.append(random.getrandbits(32))
            responses.send(values[-1])

    requests = bench.sink("requests", backpressure, on_transfer=answer)
    expected = []
    for _ in range(COUNT):
        offset, value = random.randrange(0, 1 << ADDRESS_WIDTH, 4), random.getrandbits(32)
        what = random.choice(["read", "write", "wrong length", "wrong kind"])
        if what == "read":
            message = encode_message(MessageKind.READ_REGISTER, offset=offset)
            expected.append((offset // 4, 0, None))
        elif what == "write":
            message = encode_message(MessageKind.WRITE_REGISTER, offset=offset, value=value)
            expected.append((offset // 4, 1, value))
        elif what == "wrong length":
            kind = random.choice([MessageKind.READ_REGISTER, MessageKind.WRITE_REGISTER])
            right = 3 if kind is MessageKind.READ_REGISTER else 7
            length = random.choice([length for length in range(1, 20) if length != right])
            message = bytes([kind]) + bytes(random.randrange(256) for _ in range(length - 1))
        else:
            message = bytes([MessageKind.HOST_DATA]) + bytes(random.choice([2, 6]))
        source.send(*payloads(message))
    await bench.until(lambda: source.is_empty and len(answers) == sum(not write for _, write, _ in expected))
    await bench.steps(5)
    got = [unpack(access_layout(ADDRESS_WIDTH), payload) for payload in requests.received]
    assert [(item.word, item.write, item.data if item.write else None) for item in got] == expected
    assert answers == [encode_message(MessageKind.REGISTER_VALUE, value=value) for value in values]
