"""Command queues: commands reach their unit in order, and only after older ones that they conflict with finished."""

import random

import cocotb

from openmxu.rtl.dispatch.commands import host_command
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import CONFIG, Bench, random_generator
from tb.models.dispatch import Units
from tb.models.hazards import SINGLE_BITS, random_access

COMMANDS = 400
PORTS = {
    QueuedUnit.HOST_READ: "transfer",
    QueuedUnit.HOST_WRITE: "transfer",
    QueuedUnit.MATRIX: "multiplication",
    QueuedUnit.ACTIVATION: "activation_work",
}

READ_BITS = (1 << host_command(CONFIG).size) - 1


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5, 0.95])
async def order_and_hazards(dut, stall):
    bench = await Bench.start(dut, "command_queues")
    rng = random_generator()
    names = ("unit", "access", "compare", "push")
    ports = {name: bench.port(name) for name in (*names, *set(PORTS.values()))}
    full, busy = bench.port("full"), bench.port("busy")
    ports["compare"].value = ports["push"].value = 0
    units = Units(bench, stall)
    sent = {unit: [] for unit in QueuedUnit}
    waited = 0
    for _ in range(COMMANDS):
        access = random_access(rng)
        name = PORTS[access.unit]
        payload = random.getrandbits(len(ports[name]))
        ports["unit"].value = access.unit.value
        # The single-bit members of the access come together with the unit.
        ports["access"].value = access.payload & SINGLE_BITS
        await bench.step()
        ports["access"].value = access.payload
        ports[name].value = payload
        ports["compare"].value = 1
        await bench.step()
        ports["compare"].value = 0
        # Once `full` falls, only the next push can make it rise again. It is used two cycles later.
        while int(full.value) >> access.unit.value & 1:
            waited += 1
            await bench.step()
            assert bench.cycle < 60_000
        await bench.step()
        ports["push"].value = 1 << access.unit.value
        units.expect(access)
        # Reads of host memory have no more than the first members of a transfer.
        sent[access.unit].append(payload & READ_BITS if access.unit is QueuedUnit.HOST_READ else payload)
        await bench.step()
        ports["push"].value = 0
        await bench.steps(3)
    await bench.until(lambda: units.is_idle)
    await bench.steps(3)
    assert units.received == sent
    assert int(busy.value) == 0
    if stall > 0.8:
        assert waited > 0
