"""The serial shell with a UART."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from openmxu.arch.config import Config
from openmxu.arch.serial import MESSAGE_BYTES
from openmxu.rtl.serial.link.uart import UartReceiver, UartTransmitter, uart_divisor
from openmxu.rtl.serial.shell import Shell

__all__ = ["TOP", "UartShell"]

TOP = "openmxu_serial"
"""Name of the top module of Verilog that contains nothing but this shell."""

_BITS_PER_BYTE = 10
_PATIENCE_SECONDS = 0.05
"""Time that a computer and its serial adapter may take for an answer, in addition to the time on the wire."""


class UartShell(wiring.Component):
    """The serial shell with a UART, on two wires.

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
    uart_rx, uart_tx
        Wires from the computer and to it.
    running, faulted
        See :class:`~openmxu.rtl.serial.shell.Shell`.
    """

    def __init__(self, config: Config, *, clock: int, baud: int) -> None:
        self._config = config
        self._divisor = divisor = uart_divisor(clock, baud)
        # A message and its answer, every byte of both with an escape.
        self._retransmit_cycles = round(_PATIENCE_SECONDS * clock) + 4 * MESSAGE_BYTES * _BITS_PER_BYTE * divisor
        super().__init__(
            {"uart_rx": In(1, init=1), "uart_tx": Out(1, init=1), "running": Out(1), "faulted": Out(1)},
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def divisor(self) -> int:
        """Cycles per bit."""
        return self._divisor

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.shell = shell = Shell(self.config, self._retransmit_cycles)
        m.submodules.receiver = receiver = UartReceiver(self.divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self.divisor)
        connect(m, receiver.bytes, shell.rx)
        connect(m, shell.tx, transmitter.bytes)
        m.d.comb += [
            receiver.rx.eq(self.uart_rx),
            self.uart_tx.eq(transmitter.tx),
            self.running.eq(shell.running),
            self.faulted.eq(shell.faulted),
        ]
        return m
