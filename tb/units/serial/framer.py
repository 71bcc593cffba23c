"""Framer: sends frames as the same bytes as the driver does."""

import random

import cocotb

from openmxu.arch.serial import CRC_BYTES, ESCAPE, FLAG, FrameKind
from openmxu.driver.serial_frames import Frame, encode_frame
from tb.bench import STALLS, Bench
from tb.models.messages import payloads

FRAMES = 40


def anything(length: int) -> bytes:
    """Random bytes, many of which need an escape."""
    return bytes(random.choice([FLAG, ESCAPE, random.randrange(256)]) for _ in range(length))


@cocotb.test()
@STALLS
async def frames(dut, idle, backpressure):
    bench = await Bench.start(dut, "framer")
    source, sink = bench.source("frames", idle), bench.sink("bytes", backpressure)
    expected = b""
    for length in [0, 1, 265, *(random.randrange(30) for _ in range(FRAMES))]:
        contents = anything(length)
        frame = Frame(random.choice(list(FrameKind)), random.choice([FLAG, 1]), random.choice([ESCAPE, 2]), contents)
        source.send(*payloads(bytes([frame.kind, frame.number, frame.dealt_with]) + contents))
        expected += encode_frame(frame)
    await bench.until(lambda: len(sink.received) == len(expected))
    await bench.steps(10)
    assert bytes(sink.received) == expected
    if idle == backpressure == 0:
        # Sending the checksum takes two cycles per byte.
        assert bench.cycle < len(expected) + CRC_BYTES * expected.count(FLAG) // 2 + 20
