"""Event queue: keeps events in order, loses none when it is full, and keeps the last fault."""

import random

import cocotb

from openmxu.arch.events import EventKind
from openmxu.rtl.common.interfaces import EventLayout
from tb.bench import STALLS, Bench
from tb.models.payloads import pack
from tb.rack import EVENT_QUEUE_DEPTHS

EVENTS = 200


@cocotb.test()
@STALLS
@cocotb.parametrize(depth=EVENT_QUEUE_DEPTHS)
async def order(dut, depth, idle, backpressure):
    bench = await Bench.start(dut, f"event_queue_{depth}")
    pop, first, valid, level = (bench.port(name) for name in ("pop", "first", "valid", "level"))
    happened, fault, fault_index = (bench.port(name) for name in ("happened", "fault", "fault_index"))
    events = bench.source("events", idle)
    sent = []
    for _ in range(EVENTS):
        kind = random.choice(list(EventKind))
        index = random.getrandbits(32)
        sent.append((kind, random.randrange(1, 16), random.getrandbits(32), index))
    events.send(
        *(pack(EventLayout, dict(zip(("kind", "fault", "tag", "index"), event, strict=True))) for event in sent)
    )
    got, counts, last = [], dict.fromkeys(EventKind, 0), (0, 0)
    pop.value = 0
    while len(got) < EVENTS:
        before = sum(counts.values())
        await bench.step()
        assert bench.cycle < 40 * EVENTS
        # The values after this cycle's edge are those of the registers before it.
        assert (int(fault.value), int(fault_index.value)) == last
        for kind in EventKind:
            counts[kind] += int(happened.value) >> kind & 1
        come = sum(counts.values())
        if come > before and sent[before][0] is EventKind.FAULT:
            last = sent[before][1], sent[before][3]
        # An event is in the queue from the next cycle on; without a queue, it is visible in its own cycle.
        held = (before if depth else come) - len(got)
        assert int(level.value) == held <= max(1, depth)
        assert int(valid.value) == (held > 0)
        if int(valid.value) and int(pop.value):
            got.append(int(first.value))
        assert len(events.sent) == (come if depth else len(got))
        pop.value = int(random.random() >= backpressure)
    assert got == events.sent
    assert counts == {kind: sum(event[0] is kind for event in sent) for kind in EventKind}
