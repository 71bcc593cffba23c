"""Message router: each message goes to the output for its kind; messages of other kinds are dropped."""

import random

import cocotb

from openmxu.arch.serial import MessageKind
from tb.bench import STALLS, Bench
from tb.models.messages import collect, payloads
from tb.rack import ROUTES

COUNT = 120


@cocotb.test()
@STALLS
async def messages_are_routed_by_kind(dut, idle, backpressure):
    bench = await Bench.start(dut, "message_router")
    source = bench.source("input", idle)
    got = {name: collect(bench, f"output_{name}", backpressure)[1] for name in ROUTES}
    expected = {name: [] for name in ROUTES}
    for _ in range(COUNT):
        kind = random.choice([*MessageKind, 0xFF])
        message = bytes([kind] + [random.choice([*MessageKind, 0]) for _ in range(random.randrange(6))])
        for name, kinds in ROUTES.items():
            if kind in kinds:
                expected[name].append(message)
        source.send(*payloads(message))
    await bench.until(lambda: source.is_empty)
    await bench.steps(5)
    assert got == expected
    assert all(expected.values())
