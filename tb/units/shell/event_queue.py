"""Event queue: events in order, none lost when it is full, the last fault kept."""

import random

import cocotb

from openmxu.arch.events import EventKind
from openmxu.rtl.common.interfaces import EventLayout
from tb.bench import STALLS, Bench
from tb.models.payloads import pack
from tb.rack import EVENT_QUEUE_DEPTH

EVENTS = 200


@cocotb.test()
@STALLS
async def order(dut, idle, backpressure):
    bench = await Bench.start(dut, "event_queue")
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
        taken = len(events.sent)
        await bench.step()
        assert bench.cycle < 40 * EVENTS
        # What is seen in this cycle: the registers of the last edge.
        assert int(level.value) == taken - len(got) <= EVENT_QUEUE_DEPTH
        assert int(valid.value) == (taken > len(got))
        assert (int(fault.value), int(fault_index.value)) == last
        for kind in EventKind:
            counts[kind] += int(happened.value) >> kind & 1
        if len(events.sent) > taken and sent[taken][0] is EventKind.FAULT:
            last = sent[taken][1], sent[taken][3]
        if int(valid.value) and int(pop.value):
            got.append(int(first.value))
        pop.value = int(random.random() >= backpressure)
    assert got == events.sent
    assert counts == {kind: sum(event[0] is kind for event in sent) for kind in EventKind}
