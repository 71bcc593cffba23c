"""Short message: sends the bytes of each struct, in order."""

import random

import cocotb

from openmxu.arch.serial import MessageKind
from openmxu.driver.serial_frames import encode_message
from openmxu.rtl.serial.messages import message_layout
from tb.bench import STALLS, Bench
from tb.models.messages import collect
from tb.models.payloads import pack

COUNT = 30


@cocotb.test()
@STALLS
async def bytes_in_order(dut, idle, backpressure):
    bench = await Bench.start(dut, "short_message")
    source = bench.source("input", idle)
    _, messages = collect(bench, "output", backpressure)
    expected = []
    for _ in range(COUNT):
        fields = {"address": random.getrandbits(64), "length": random.getrandbits(16)}
        source.send(pack(message_layout(MessageKind.READ_HOST), {"kind": MessageKind.READ_HOST, **fields}))
        expected.append(encode_message(MessageKind.READ_HOST, **fields))
    await bench.until(lambda: len(messages) == COUNT)
    await bench.steps(5)
    assert messages == expected
