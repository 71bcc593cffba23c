"""Scrubber: instructions and events pass through except during a scrub, and none is lost."""

import cocotb

from openmxu.arch.events import EventKind
from openmxu.arch.isa import Opcode
from openmxu.arch.scrub import scrub_program
from openmxu.rtl.common.interfaces import EventLayout
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.pulses import Pulses

SCRUB = [instruction.word for instruction in scrub_program(CONFIG)]
HALT = Opcode.HALT.value


class Dispatcher(Agent):
    """Takes words, and reports each Halt some cycles later, with its number as the tag."""

    def __init__(self, bench, idle):
        self.bench = bench
        self.idle, self.scrubs, self.pending = (bench.port(name) for name in ("idle", "scrubs", "pending"))
        self.own, self.host, self.halts, self.host_halts = [], [], 0, []
        self.reports_at = None
        self.events = bench.source("happened", idle)
        bench.sink("dispatched", on_transfer=self.on_word, may_take=lambda: self.reports_at is None)
        bench.add(self)

    def on_word(self, word):
        scrubs = bool(self.scrubs.value)
        assert not scrubs or self.pending.value, "clears without a request"
        (self.own if scrubs else self.host).append(word)
        self.running = word != HALT
        if word == HALT:
            self.reports_at = self.bench.cycle + 5
            if not scrubs:
                self.host_halts.append(self.halts)

    running = False

    def sample(self):
        if self.reports_at == self.bench.cycle:
            self.events.send(pack(EventLayout, {"kind": EventKind.HALT, "tag": self.halts}))
            self.halts += 1
        elif self.reports_at is not None and self.bench.cycle > self.reports_at and self.events.is_empty:
            self.reports_at = None

    def drive(self):
        self.idle.value = int(not self.running and self.reports_at is None)


class Requests(Agent):
    """Requests scrubs at random, and counts the requests made while none is pending."""

    def __init__(self, bench, rng, probability):
        self.rng, self.probability = rng, probability
        self.port, self.pending = bench.port("request"), bench.port("pending")
        self.asked = self.counted = 0
        bench.add(self)

    def sample(self):
        self.counted += self.asked and not int(self.pending.value)

    def drive(self):
        self.asked = int(self.rng.random() < self.probability)
        self.port.value = self.asked


@cocotb.test()
@STALLS
async def programs(dut, idle, backpressure):
    bench = await Bench.start(dut, "scrubber")
    rng = random_generator()
    dispatcher = Dispatcher(bench, idle)
    requests = Requests(bench, rng, 0.02)
    instructions = bench.source("instructions", idle)
    events = bench.sink("events", backpressure)
    clears = Pulses(bench, "clear", lambda count: len(dispatcher.own) == (count - 1) * len(SCRUB))
    words = [HALT if rng.random() < 0.2 else int(rng.integers(1 << 60)) << 8 for _ in range(400)] + [HALT]
    instructions.send(*words)
    await bench.until(lambda: instructions.is_empty)
    requests.probability = 0
    await bench.until(lambda: not int(requests.pending.value) and not requests.asked)
    await bench.until(lambda: len(events.received) == words.count(HALT))
    await bench.steps(20)
    assert dispatcher.host == words
    assert requests.counted > 3
    assert dispatcher.own == SCRUB * requests.counted
    assert clears.count == requests.counted
    assert [unpack(EventLayout, event).tag for event in events.received] == dispatcher.host_halts


@cocotb.test()
async def waits_for_the_end_of_a_program(dut):
    bench = await Bench.start(dut, "scrubber")
    dispatcher = Dispatcher(bench, 0.0)
    request, pending = bench.port("request"), bench.port("pending")
    request.value = 0
    instructions, _ = bench.source("instructions"), bench.sink("events")
    instructions.send(1 << 8)
    await bench.until(lambda: bool(dispatcher.host))
    request.value = 1
    await bench.step()
    request.value = 0
    await bench.steps(50)
    assert int(pending.value)
    assert dispatcher.own == []
    instructions.send(HALT, 2 << 8)
    await bench.until(lambda: len(dispatcher.host) == 3)
    assert dispatcher.own == SCRUB
    assert not int(pending.value)
