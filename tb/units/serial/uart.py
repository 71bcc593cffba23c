"""UART: bytes become waveforms and waveforms become bytes, also if the clocks differ slightly."""

import random

import cocotb

from tb.bench import Bench
from tb.rack import UART_DIVISORS

BYTES = 60


def levels(byte: int, cycles_per_bit: float) -> list[int]:
    """Levels of the wire, cycle by cycle, while a byte is sent; ``cycles_per_bit`` may be fractional."""
    bits = [0, *(byte >> bit & 1 for bit in range(8)), 1]
    edges = [round(index * cycles_per_bit) for index in range(len(bits) + 1)]
    return [bit for bit, first, end in zip(bits, edges, edges[1:], strict=False) for _ in range(end - first)]


@cocotb.test()
@cocotb.parametrize(divisor=UART_DIVISORS, idle=[0.0, 0.99])
async def transmitter(dut, divisor, idle):
    bench = await Bench.start(dut, f"uart_transmitter_{divisor}")
    source, wire = bench.source("bytes", idle), bench.port("tx")
    sent = [0, 255, 0x55, *(random.randrange(256) for _ in range(BYTES))]
    source.send(*sent)
    seen = []
    while not source.is_empty or len(seen) < 10 * divisor * len(sent):
        await bench.step()
        seen.append(int(wire.value))
    for _ in range(12 * divisor):
        await bench.step()
        seen.append(int(wire.value))
    got = []
    place = 0
    while 0 in seen[place:]:
        place = seen.index(0, place)
        for index, level in enumerate(levels(sent[len(got)], divisor)):
            assert seen[place + index] == level, f"byte {len(got)}, cycle {index}"
        got.append(sent[len(got)])
        place += 10 * divisor
    assert got == sent


@cocotb.test()
@cocotb.parametrize(divisor=UART_DIVISORS, drift=[0.0, 0.02, -0.02], pauses=[False, True])
async def receiver(dut, divisor, drift, pauses):
    bench = await Bench.start(dut, f"uart_receiver_{divisor}")
    wire, sink = bench.port("rx"), bench.sink("bytes")
    wire.value = 1
    await bench.steps(5)
    sent = [0, 255, 0x55, *(random.randrange(256) for _ in range(BYTES))]
    for byte in sent:
        for level in levels(byte, divisor * (1 + drift)):
            wire.value = level
            await bench.step()
        if pauses:
            await bench.steps(random.randrange(4 * divisor))
    await bench.steps(2 * divisor)
    assert sink.received == sent


@cocotb.test()
async def invalid_bytes_are_dropped(dut):
    """A glitch is not a start bit; a byte without a stop bit is dropped, and the next one is received."""
    divisor = UART_DIVISORS[-1]
    bench = await Bench.start(dut, f"uart_receiver_{divisor}")
    wire, sink = bench.port("rx"), bench.sink("bytes")
    wire.value = 1
    await bench.steps(5)
    for level in [0, 0, *[1] * 20 * divisor, *[0] * 10 * divisor, *[1] * 20 * divisor, *levels(0xA5, divisor)]:
        wire.value = level
        await bench.step()
    await bench.steps(2 * divisor)
    assert sink.received == [0xA5]
