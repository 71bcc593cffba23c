"""Message arbiter: messages stay whole and in the order of their sender, and none is lost."""

import random

import cocotb

from tb.bench import STALLS, Bench
from tb.models.messages import collect, payloads
from tb.rack import AXI_CLIENTS

COUNT = 60


@cocotb.test()
@STALLS
async def whole_messages(dut, idle, backpressure):
    bench = await Bench.start(dut, "message_arbiter")
    sources = [bench.source(f"input_{name}", idle) for name in AXI_CLIENTS]
    _, got = collect(bench, "output", backpressure)
    sent = [[], []]
    for index in range(COUNT):
        for sender, source in enumerate(sources):
            message = bytes([sender, index] + [random.randrange(256) for _ in range(random.randrange(5))])
            sent[sender].append(message)
            source.send(*payloads(message))
    await bench.until(lambda: len(got) == 2 * COUNT)
    await bench.steps(5)
    for sender, messages in enumerate(sent):
        assert [message for message in got if message[0] == sender] == messages
    if not idle:
        assert got[:COUNT] == sent[0], "the first sender comes first"
