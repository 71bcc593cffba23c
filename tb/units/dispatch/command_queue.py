"""Command queue: what is pushed comes out in order, whatever stands at its input between pushes."""

import random

import cocotb

from tb.bench import CONFIG, Agent, Bench

COUNT = 300
WIDTH = 8


class Starter(Agent):
    """Starts the oldest of ``pushed`` commands, some time after the one before has left."""

    def __init__(self, bench, sink):
        self._start, self._sink = bench.port("start"), sink
        self._idle = random.choice([0.0, 0.3])
        self.pushed, self._started = 0, 0
        bench.add(self)

    def drive(self):
        has_any = self._started == len(self._sink.received) < self.pushed
        starts = has_any and random.random() >= self._idle
        self._started += starts
        self._start.value = int(starts)


@cocotb.test()
@cocotb.parametrize(backpressure=[0.0, 0.5, 0.95])
async def keeps_what_is_pushed(dut, backpressure):
    bench = await Bench.start(dut, "command_queue")
    command, push = bench.port("command"), bench.port("push")
    push.value = 0
    sink = bench.sink("output", backpressure)
    starter = Starter(bench, sink)
    pushed, most = [], 0
    for _ in range(COUNT):
        for _ in range(random.choice([1, 1, 2, 9])):
            command.value = random.getrandbits(WIDTH)
            await bench.step()
        payload = command.value = random.getrandbits(WIDTH)
        await bench.steps(2)
        while len(pushed) - len(sink.received) == CONFIG.command_queue_depth:
            await bench.step()
        push.value = 1
        starter.pushed += 1
        await bench.step()
        push.value = 0
        pushed.append(payload)
        most = max(most, len(pushed) - len(sink.received))
        await bench.step()
    await bench.until(lambda: len(sink.received) == COUNT)
    await bench.steps(3)
    assert sink.received == pushed
    if backpressure > 0.8:
        assert most == CONFIG.command_queue_depth
