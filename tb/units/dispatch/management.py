"""Management: registers read back as written, counters count, and each command acts once."""

import cocotb
import numpy as np

from openmxu.arch.events import IDENTIFICATION, STATUS_UNITS_OFFSET, Command, CoreStatus, Counter
from openmxu.arch.events import Management as Address
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.counters import increments_layout
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.pulses import Pulses

UNITS = ["management", "management_small"]
"""The units under test."""

FLAGS = [flag.name.lower() for flag in CoreStatus]

WINDOWS = {
    Address.HOST_BASE: ("host_base", CONFIG.host_address_width),
    Address.HOST_LIMIT: ("host_limit", CONFIG.host_address_width + 1),
    Address.WEIGHT_BASE: ("weight_base", CONFIG.weight_address_width),
    Address.WEIGHT_LIMIT: ("weight_limit", CONFIG.weight_address_width + 1),
}


BEATS = {
    Counter.HOST_READ_BYTES: CONFIG.host_data_bytes,
    Counter.HOST_WRITE_BYTES: CONFIG.host_data_bytes,
    Counter.WEIGHT_BYTES: CONFIG.weight_data_bytes,
}
BYTES = np.array([BEATS.get(counter, 1) for counter in Counter])
"""Amount by which an increment raises each counter."""


def request(address, data=None):
    """A read, or a write of ``data``."""
    values = {"write": 0} if data is None else {"write": 1, "data": data}
    return pack(ManagementRequest, {"address": address, **values})


async def make_bench(dut, idle=0.0, backpressure=0.0, unit="management"):
    bench = await Bench.start(dut, unit)
    for name in ("increments", "units_busy", *FLAGS):
        bench.port(name).value = 0
    return bench, bench.source("requests", idle), bench.sink("responses", backpressure)


@cocotb.test()
@STALLS
@cocotb.parametrize(unit=UNITS)
async def registers(dut, unit, idle, backpressure):
    bench, requests, responses = await make_bench(dut, idle, backpressure, unit)
    rng = random_generator()
    pulses = {
        Command.CLEAR_FAULT: Pulses(bench, "clear_fault"),
        Command.ACKNOWLEDGE: Pulses(bench, "acknowledge"),
        Command.SCRUB: Pulses(bench, "scrub"),
    }
    values, expected = dict.fromkeys(WINDOWS, 0), []
    commands = dict.fromkeys(pulses, 0)
    for _ in range(300):
        address = int(rng.choice([*WINDOWS, *WINDOWS, Address.COMMAND, Address.IDENTIFICATION, 0xFF]))
        if rng.random() < 0.5:
            data = int(rng.integers(0, 1 << 63)) >> int(rng.integers(64))
            requests.send(request(address, data))
            if address in WINDOWS:
                values[address] = data & ((1 << WINDOWS[address][1]) - 1)
            if address == Address.COMMAND:
                for command in commands:
                    commands[command] += data >> command & 1
        else:
            requests.send(request(address))
            expected.append(IDENTIFICATION if address == Address.IDENTIFICATION else values.get(address, 0))
    await bench.until(lambda: requests.is_empty and len(responses.received) == len(expected))
    await bench.steps(4)
    assert responses.received == expected
    windows = unpack(MemoryWindows(CONFIG), int(bench.port("windows").value))
    assert {address: getattr(windows, name) for address, (name, _) in WINDOWS.items()} == values
    assert {command: watcher.count for command, watcher in pulses.items()} == commands


@cocotb.test()
@cocotb.parametrize(unit=UNITS)
async def status(dut, unit):
    bench, requests, responses = await make_bench(dut, unit=unit)
    for number in range(512):
        units, rest = number & 0x1F, number >> 5
        bench.port("units_busy").value = units
        for index, name in enumerate(FLAGS):
            bench.port(name).value = rest >> index & 1
        requests.send(request(Address.STATUS))
        await bench.until(lambda number=number: len(responses.received) > number)
        assert responses.received[-1] == rest | units << STATUS_UNITS_OFFSET


@cocotb.test()
async def counters(dut):
    bench, requests, responses = await make_bench(dut)
    rng = random_generator()
    layout = increments_layout()
    names = [counter.name.lower() for counter in Counter]

    async def read_all():
        responses.received.clear()
        requests.send(*(request(Address.COUNTERS + counter) for counter in Counter))
        await bench.until(lambda: len(responses.received) == len(Counter))
        return list(responses.received)

    total = np.zeros(len(Counter), np.int64)
    port = bench.port("increments")
    for _ in range(3):
        for _ in range(200):
            steps = [int(rng.integers(0, 1 << layout[name].width)) for name in names]
            port.value = pack(layout, dict(zip(names, steps, strict=True)))
            total += np.array(steps) * BYTES
            await bench.step()
        port.value = 0
        await bench.steps(3)
        assert await read_all() == total.tolist()
    requests.send(request(Address.COMMAND, 1 << Command.CLEAR_COUNTERS))
    await bench.until(lambda: requests.is_empty)
    await bench.steps(2)
    assert await read_all() == [0] * len(Counter)


@cocotb.test()
@STALLS
async def counters_are_read_while_they_count(dut, idle, backpressure):
    bench, requests, responses = await make_bench(dut, idle, backpressure)
    rng = random_generator()
    names = [counter.name.lower() for counter in Counter]
    port = bench.port("increments")
    totals = [np.zeros(len(Counter), np.int64)]
    number, asked_at, last = None, 0, dict.fromkeys(Counter, 0)
    for cycle in range(6000):
        # Long runs of increments carry from one part of a total into the next one.
        steps = (rng.random(len(Counter)) < (1.0 if cycle // 500 % 2 else 0.3)).astype(int)
        port.value = pack(increments_layout(), dict(zip(names, steps.tolist(), strict=True)))
        totals.append(totals[-1] + steps * BYTES)
        if number is None:
            number, asked_at = Counter(int(rng.integers(len(Counter)))), cycle
            requests.send(request(Address.COUNTERS + number))
        elif responses.received:
            value = responses.received.pop()
            # The value includes all increments before the request, and none after the response.
            assert totals[max(0, asked_at - 2)][number] <= value <= totals[cycle][number]
            assert value >= last[number]
            last[number], number = value, None
        await bench.step()


@cocotb.test()
async def counters_are_clear_after_a_scrub(dut):
    bench, requests, responses = await make_bench(dut)
    scrubbing, increments = bench.port("scrubbing"), bench.port("increments")
    scrubbing.value = 1
    increments.value = pack(increments_layout(), {counter.name.lower(): 1 for counter in Counter})
    await bench.steps(20)
    # The Halt of the scrubber's program is counted in the last cycle.
    await bench.step()
    increments.value, scrubbing.value = 0, 0
    await bench.steps(4)
    requests.send(*(request(Address.COUNTERS + counter) for counter in Counter))
    await bench.until(lambda: len(responses.received) == len(Counter))
    assert responses.received == [0] * len(Counter)


@cocotb.test()
@STALLS
async def the_small_management_counts_cycles(dut, idle, backpressure):
    bench, requests, responses = await make_bench(dut, idle, backpressure, "management_small")
    rng = random_generator()
    for _ in range(20):
        requests.send(request(Address.COMMAND, 1 << Command.CLEAR_COUNTERS))
        await bench.until(lambda: requests.is_empty)
        cycles = 0
        for _ in range(50):
            running = int(rng.integers(2))
            bench.port("running").value = running
            cycles += running
            await bench.step()
        bench.port("running").value = 0
        responses.received.clear()
        requests.send(*(request(Address.COUNTERS + counter) for counter in Counter))
        await bench.until(lambda: len(responses.received) == len(Counter))
        assert responses.received == [cycles if counter is Counter.CYCLES else 0 for counter in Counter]
