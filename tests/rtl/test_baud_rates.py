"""The UARTs of the boards at their fastest rates: bytes back to back, from and to a USB chip whose clock is 2 % off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from openmxu.rtl.boards import BOARDS
from openmxu.rtl.boards.pll import pll_factors
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.serial.link.uart import UartReceiver, UartTransmitter, uart_divisor

FAST = 3_000_000
BYTES = bytes((0x00, 0xFF, 0x55, 0xAA, 0x7E, 0x7D, 0x81, 0x18, 0x00, 0xF0))
DRIFT = 0.02


class Repeater(Elaboratable):
    """A receiver whose bytes a transmitter sends back."""

    def __init__(self, divisor: int) -> None:
        self.divisor, self.rx, self.tx = divisor, Signal(init=1), Signal(init=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(self.divisor)
        m.submodules.queue = queue = StreamFIFO(8, len(BYTES))
        m.submodules.transmitter = transmitter = UartTransmitter(self.divisor)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            queue.input.valid.eq(receiver.bytes.valid),
            queue.input.payload.eq(receiver.bytes.payload),
        ]
        connect(m, queue.output, transmitter.bytes)
        return m


def sent(bit: float) -> Iterator[int]:
    """The levels of the wire, cycle by cycle, while a chip sends; its bits take ``bit`` cycles."""
    levels = [1, *(level for byte in BYTES for level in (0, *(byte >> place & 1 for place in range(8)), 1)), 1]
    for cycle in range(int(len(levels) * bit)):
        yield levels[int(cycle / bit)]


def received(levels: list[int], bit: float) -> bytes:
    """The bytes that a chip takes from the wire, which samples each bit in its middle."""
    found, cycle = bytearray(), 0
    while 0 in levels[cycle:]:
        start = levels.index(0, cycle)
        bits = [levels[start + int((place + 0.5) * bit)] for place in range(10)]
        assert (bits[0], bits[-1]) == (0, 1)
        found.append(sum(level << place for place, level in enumerate(bits[1:-1])))
        cycle = start + int(9.5 * bit)
    return bytes(found)


def echoed(divisor: int, drift: float) -> bytes:
    """What comes back from a design with this divisor, at a chip whose bits are longer by ``drift``."""
    design, levels = Repeater(divisor), []

    async def chip(context) -> None:
        for level in (*sent(divisor * (1 + drift)), *[1] * (12 * divisor)):
            context.set(design.rx, level)
            await context.tick()
            levels.append(context.get(design.tx))

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(chip)
    simulator.run()
    return received(levels + [1] * 10 * divisor, divisor * (1 + drift))


@pytest.mark.parametrize("drift", [-DRIFT, DRIFT])
@pytest.mark.parametrize("name", BOARDS)
def test_bytes_return_at_the_fastest_rate(name: str, drift: float) -> None:
    board = BOARDS[name]
    pin = round(board.make_platform().default_clk_frequency)
    clock = round(pll_factors(board.family, pin, board.frequency * 1e6).frequency)
    divisor = uart_divisor(clock, FAST)
    assert clock / divisor == FAST, "the clock makes the rate exactly"
    # The last bytes may still be on their way when the chip stops to look.
    assert BYTES.startswith(echo := echoed(divisor, drift))
    assert len(echo) >= len(BYTES) - 2


def test_a_rate_that_the_usb_chip_lacks() -> None:
    board = BOARDS["ulx3s_85f"]
    with pytest.raises(ValueError, match="the FT231X of ulx3s_85f makes up to 3000000 baud, not 5000000"):
        board.check_baud(5_000_000)
