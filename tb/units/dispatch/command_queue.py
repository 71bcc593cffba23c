"""Command queue: commands come out in order, whatever is at its input between pushes."""

import random

import cocotb

from tb.bench import CONFIG, Agent, Bench

COUNT = 300
WIDTH = 8


class Taker(Agent):
    """Takes the oldest command, at the earliest two cycles after its push."""

    def __init__(self, bench, backpressure):
        self._bench, self._backpressure = bench, backpressure
        self._take, self._oldest = bench.port("take"), bench.port("oldest")
        self._take.value = 0
        self.pushed, self.received = [], []
        bench.add(self)

    def sample(self):
        if int(self._take.value):
            self.received.append(int(self._oldest.value))

    def drive(self):
        has_any = (
            len(self.received) < len(self.pushed) and self.pushed[len(self.received)] + 2 <= self._bench.next_cycle
        )
        self._take.value = int(has_any and random.random() >= self._backpressure)


@cocotb.test()
@cocotb.parametrize(backpressure=[0.0, 0.5, 0.95])
async def commands_keep_their_order(dut, backpressure):
    bench = await Bench.start(dut, "command_queue")
    command, push = bench.port("command"), bench.port("push")
    push.value = 0
    taker = Taker(bench, backpressure)
    pushed, most = [], 0
    for _ in range(COUNT):
        for _ in range(random.choice([1, 1, 2, 9])):
            command.value = random.getrandbits(WIDTH)
            await bench.step()
        payload = command.value = random.getrandbits(WIDTH)
        await bench.steps(2)
        while len(pushed) - len(taker.received) == CONFIG.command_queue_depth:
            await bench.step()
        push.value = 1
        taker.pushed.append(bench.next_cycle)
        await bench.step()
        push.value = 0
        pushed.append(payload)
        most = max(most, len(pushed) - len(taker.received))
        await bench.step()
    await bench.until(lambda: len(taker.received) == COUNT)
    await bench.steps(3)
    assert taker.received == pushed
    if backpressure > 0.8:
        assert most == CONFIG.command_queue_depth
