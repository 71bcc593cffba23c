"""The serial shell at two wires."""

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.serial.uart_shell import UartShell

__all__ = ["TOP", "Top"]

TOP = "openmxu_serial"
"""Name of the top module."""


class Top(wiring.Component):
    """The shell with a UART, in one clock domain.

    Parameters
    ----------
    config
        Sizes of the core.
    clock
        Frequency of the clock, in Hz.
    baud
        Bits per second on each wire; see :func:`~openmxu.rtl.serial.link.uart.uart_divisor`.

    Members
    -------
    clk, rst
        Clock, and reset, active high and synchronous.
    uart_rx, uart_tx
        Wires from the computer and to it.
    running, faulted
        See :class:`~openmxu.rtl.serial.shell.Shell`.
    """

    def __init__(self, config: Config, *, clock: int, baud: int) -> None:
        self._shell = UartShell(config, clock=clock, baud=baud)
        super().__init__(
            {
                "clk": In(1),
                "rst": In(1),
                "uart_rx": In(1, init=1),
                "uart_tx": Out(1, init=1),
                "running": Out(1),
                "faulted": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._shell.config

    @property
    def divisor(self) -> int:
        """Cycles per bit."""
        return self._shell.divisor

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain()
        m.submodules.shell = shell = self._shell
        m.d.comb += [
            domain.clk.eq(self.clk),
            domain.rst.eq(self.rst),
            shell.uart_rx.eq(self.uart_rx),
            self.uart_tx.eq(shell.uart_tx),
            self.running.eq(shell.running),
            self.faulted.eq(shell.faulted),
        ]
        return m
