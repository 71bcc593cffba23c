"""Command queues: every command reaches its unit, in order, and not before what it has to wait for has finished."""

import random

import cocotb

from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import Bench, random_generator
from tb.models.dispatch import Units
from tb.models.hazards import random_access

COMMANDS = 400
PORTS = {
    QueuedUnit.HOST_READ: "transfer",
    QueuedUnit.HOST_WRITE: "transfer",
    QueuedUnit.MATRIX: "multiplication",
    QueuedUnit.ACTIVATION: "activation_work",
}


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5, 0.85])
async def order_and_hazards(dut, stall):
    bench = await Bench.start(dut, "command_queues")
    rng = random_generator()
    names = ("unit", "access", "push")
    ports = {name: bench.port(name) for name in (*names, *set(PORTS.values()))}
    full, busy = bench.port("full"), bench.port("busy")
    ports["push"].value = 0
    units = Units(bench, stall)
    sent = {unit: [] for unit in QueuedUnit}
    waited = 0
    for _ in range(COMMANDS):
        access = random_access(rng)
        name = PORTS[access.unit]
        payload = random.getrandbits(len(ports[name]))
        ports["unit"].value, ports["access"].value = access.unit.value, access.payload
        ports[name].value = payload
        await bench.steps(3)
        # `full` falls when an instruction finishes, and nothing but a push makes it rise.
        while int(full.value) >> access.unit.value & 1:
            waited += 1
            await bench.step()
            assert bench.cycle < 30_000
        ports["push"].value = 1 << access.unit.value
        units.expect(access)
        sent[access.unit].append(payload)
        await bench.step()
        ports["push"].value = 0
        await bench.step()
    await bench.until(lambda: units.is_idle)
    await bench.steps(3)
    assert units.received == sent
    assert int(busy.value) == 0
    if stall > 0.8:
        assert waited > 0
