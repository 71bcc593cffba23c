"""The serial shell on a board: clock, reset, port and LEDs."""

from amaranth.build import Platform
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from openmxu.arch.config import Config
from openmxu.rtl.boards.board import Board
from openmxu.rtl.boards.pll import Pll, pll_factors
from openmxu.rtl.serial.link.uart import uart_divisor
from openmxu.rtl.serial.uart_shell import UartShell
from openmxu.rtl.shell.clocked import make_domains

__all__ = ["TOP", "BoardTop"]

TOP = "openmxu_board"
"""Name of the top module."""

_GLOW_SECONDS = 0.05
"""Time that an LED stays on for a byte, which takes only microseconds on the wire."""


class BoardTop(Elaboratable):
    """The whole design of a board. The first button resets it; so does power-on, until the clock is stable.

    Parameters
    ----------
    board
        The board.
    config
        Sizes of the core.
    frequency
        Upper limit of the clock's frequency, in MHz; the board's PLL makes the highest one that it can.
    baud
        Bits per second of the serial port.

    Raises
    ------
    ValueError
        The board's PLL cannot make such a frequency, or the clock or the USB chip cannot make such a baud rate.
    """

    def __init__(self, board: Board, config: Config, frequency: float, baud: int) -> None:
        self._board = board
        self._config = config
        self._baud = baud
        platform = board.make_platform()
        self._input = round(platform.default_clk_frequency)
        self._factors = pll_factors(board.family, self._input, frequency * 1e6)
        uart_divisor(self._clock, baud)
        board.check_baud(baud)

    @property
    def frequency(self) -> float:
        """Frequency of the clock, in MHz."""
        return self._factors.frequency / 1e6

    @property
    def _clock(self) -> int:
        return round(self._factors.frequency)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        board = self._board
        pin = platform.request(platform.default_clk, dir="-")
        m.submodules.pll = pll = Pll(board.family, self._factors, pin, self._input)
        domain = make_domains(m)
        m.d.comb += domain.clk.eq(pll.clk)
        m.submodules.button = button = io.Buffer("i", platform.request("button", 0, dir="-"))
        # The synchronizer stays beside the pins; the register after it may be placed near the core.
        m.domains.pins = pins = ClockDomain(local=True)
        m.d.comb += pins.clk.eq(pll.clk)
        m.submodules.reset = ResetSynchronizer(~pll.locked | button.i, domain="pins")
        resets = Signal(init=1, reset_less=True)
        m.d.pins += resets.eq(pins.rst)
        m.d.comb += domain.rst.eq(resets)

        m.submodules.shell = shell = UartShell(self._config, clock=self._clock, baud=self._baud)
        wires = platform.request("uart", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", wires.rx)
        m.submodules.tx = tx = io.Buffer("o", wires.tx)
        m.d.comb += [shell.uart_rx.eq(rx.i), tx.o.eq(shell.uart_tx)]

        glow = Signal(range(round(_GLOW_SECONDS * self._clock)))
        with m.If(~(rx.i & shell.uart_tx)):
            m.d.sync += glow.eq(~0)
        with m.Elif(glow != 0):
            m.d.sync += glow.eq(glow - 1)
        indicators = {"running": shell.running, "faulted": shell.faulted, "active": glow != 0}
        for number, names in enumerate(board.leds):
            m.submodules[f"led_{number}"] = led = io.Buffer("o", platform.request("led", number, dir="-"))
            m.d.sync += led.o.eq(Cat(indicators[name] for name in names).any())
        return m
