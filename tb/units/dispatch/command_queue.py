"""Command queue: what is pushed comes out in order, whatever else stands at its input, also while the queue is full."""

import random

import cocotb

from tb.bench import CONFIG, Bench

COUNT = 400
WIDTH = 8


@cocotb.test()
@cocotb.parametrize(backpressure=[0.0, 0.5, 0.9])
async def keeps_what_is_pushed(dut, backpressure):
    bench = await Bench.start(dut, "command_queue")
    command, push = bench.port("command"), bench.port("push")
    push.value = 0
    sink = bench.sink("output", backpressure)
    pushed, most = [], 0
    while len(pushed) < COUNT:
        # Room is known a cycle late, as it is to the dispatcher, so that full queues see commands as well.
        has_room = len(pushed) - len(sink.received) < CONFIG.command_queue_depth
        payload, pushes = random.getrandbits(WIDTH), has_room and random.random() < 0.5
        command.value, push.value = payload, int(pushes)
        if pushes:
            pushed.append(payload)
        await bench.step()
        most = max(most, len(pushed) - len(sink.received))
        assert bench.cycle < 100 * COUNT
    push.value = 0
    await bench.until(lambda: len(sink.received) == COUNT)
    await bench.steps(3)
    assert sink.received == pushed
    if backpressure > 0.8:
        assert most == CONFIG.command_queue_depth
