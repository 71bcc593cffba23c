"""Deframer: finds the same frames as the deframer of the driver, with any damage on the wire."""

import random

import cocotb

from openmxu.arch.serial import FrameKind
from openmxu.driver import serial_frames
from openmxu.driver.serial_frames import Frame, encode_frame
from openmxu.sim.noisy_wire import DAMAGES
from tb.bench import Agent, Bench
from tb.units.serial.framer import anything

FRAMES = 300


class Frames(Agent):
    """Records frames: their contents, and whether they are good."""

    def __init__(self, bench: Bench) -> None:
        self._ports = [bench.port(name) for name in ("contents__valid", "contents__payload", "end", "good")]
        self._held = bytearray()
        self.frames: list[tuple[bytes, bool]] = []
        bench.add(self)

    def sample(self) -> None:
        valid, payload, end, good = (int(port.value) for port in self._ports)
        assert not (valid and end)
        if valid:
            self._held.append(payload)
        if end:
            self.frames.append((bytes(self._held), bool(good)))
            self._held.clear()


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], damaged=[0.0, 0.5])
async def frames(dut, idle, damaged):
    bench = await Bench.start(dut, "deframer")
    source, sink = bench.source("bytes", idle), Frames(bench)
    generator = random.Random(random.getrandbits(32))
    wire = bytearray(anything(20))
    sent = []
    for _ in range(FRAMES):
        frame = Frame(random.choice(list(FrameKind)), 5, 6, anything(random.randrange(20)))
        piece = bytearray(encode_frame(frame))
        if generator.random() < damaged:
            piece = generator.choice(list(DAMAGES.values()))(piece, generator)
        else:
            sent.append(frame)
        wire += piece
    model = serial_frames.Deframer()
    expected = model.frames(bytes(wire))
    source.send(*wire)
    await bench.until(lambda: source.is_empty)
    await bench.steps(5)
    got = [contents for contents, good in sink.frames if good]
    assert got == [bytes([frame.kind, frame.number, frame.dealt_with]) + frame.contents for frame in expected]
    assert len(sink.frames) - len(got) == model.bad
    if not damaged:
        assert expected == sent
    else:
        assert model.bad > FRAMES // 10
