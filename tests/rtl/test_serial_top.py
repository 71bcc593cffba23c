"""The serial shell, driven bit by bit at its wires: a restart of the link, and register accesses."""

from __future__ import annotations

from amaranth.sim import Simulator

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.registers import device_register
from openmxu.arch.serial import FrameKind, MessageKind
from openmxu.driver.serial_frames import Deframer, Frame, decode_message, encode_frame, encode_message
from openmxu.rtl.serial.uart_shell import UartShell
from openmxu.rtl.shell.clocked import Clocked

CLOCK, BAUD = 8_000_000, 1_000_000
CONFIG = Config(size=2, activation_lanes=1, unified_buffer_rows=4, accumulator_rows=4, parameter_sets=1)


def exchange() -> list[Frame]:
    """The frames of the device: replies to a restart, to reads of both halves of a register, and to a write."""
    shell = UartShell(CONFIG, clock=CLOCK, baud=BAUD)
    top, bit = Clocked(shell), shell.divisor
    offset = device_register("IDENTIFICATION").offset
    frames: list[Frame] = []
    deframer = Deframer()

    async def send(context, frame: Frame) -> None:
        for byte in encode_frame(frame):
            for level in (0, *(byte >> place & 1 for place in range(8)), 1):
                context.set(top.uart_rx, level)
                await context.tick().repeat(bit)

    async def computer(context) -> None:
        await send(context, Frame(FrameKind.SYNCHRONIZE, contents=b"\x7e\x01\x02\x03"))
        await until(context, 1)
        for number, message in enumerate(
            (
                encode_message(MessageKind.READ_REGISTER, offset=offset),
                encode_message(MessageKind.READ_REGISTER, offset=offset + 4),
                encode_message(MessageKind.WRITE_REGISTER, offset=device_register("CONTROL").offset, value=0),
            )
        ):
            await send(context, Frame(FrameKind.MESSAGE, number + 1, number, message))
            await until(context, number + 2)

    async def until(context, count: int) -> None:
        for _ in range(100_000 // bit):
            await context.tick().repeat(bit)
            if len(frames) >= count:
                return
        raise AssertionError(f"only {len(frames)} frames came")

    async def wire(context) -> None:
        while True:
            await context.tick()
            if context.get(top.uart_tx):
                continue
            await context.tick().repeat(bit // 2)
            value = 0
            for place in range(8):
                await context.tick().repeat(bit)
                value |= context.get(top.uart_tx) << place
            await context.tick().repeat(bit)
            frames.extend(deframer.frames(bytes([value])))

    async def clock(context) -> None:
        while True:
            for level in (1, 0):
                context.set(top.clk, level)
                await context.delay(0.5 / CLOCK)

    simulator = Simulator(top)
    simulator.add_testbench(clock, background=True)
    simulator.add_testbench(computer)
    simulator.add_testbench(wire, background=True)
    simulator.run()
    assert deframer.bad == 0
    return frames


def test_registers() -> None:
    begun, low, high, written = exchange()
    assert (begun.kind, begun.contents[:4]) == (FrameKind.SYNCHRONIZED, b"\x7e\x01\x02\x03")
    values = [decode_message(frame.contents).fields["value"] for frame in (low, high)]
    assert values == [IDENTIFICATION & 0xFFFFFFFF, IDENTIFICATION >> 32]
    assert [(frame.number, frame.dealt_with) for frame in (low, high)] == [(1, 1), (2, 2)]
    assert (written.kind, written.dealt_with) == (FrameKind.ACKNOWLEDGE, 3)
