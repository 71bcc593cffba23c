"""UART: bytes on two wires, 8 bits, no parity, one stop bit."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["LEAST_DIVISOR", "UartReceiver", "UartTransmitter", "uart_divisor"]

LEAST_DIVISOR = 4
"""Smallest number of cycles per bit: a bit is sampled in its middle, within one cycle."""


def uart_divisor(clock: int, baud: int) -> int:
    """The cycles per bit with which a clock of ``clock`` Hz makes ``baud`` bits per second, within 2 %.

    Raises
    ------
    ValueError
        There is no such number.
    """
    divisor = max(1, round(clock / baud))
    if divisor < LEAST_DIVISOR or not 0.98 < clock / divisor / baud < 1.02:
        raise ValueError(f"a clock of {clock} Hz cannot make {baud} baud: {clock / baud:.2f} cycles per bit")
    return divisor


class UartTransmitter(wiring.Component):
    """Sends a start bit, eight data bits, lowest first, and a stop bit.

    Parameters
    ----------
    divisor
        Cycles per bit, :data:`LEAST_DIVISOR` or more.

    Members
    -------
    bytes
        Bytes to send.
    tx
        The wire, registered; high while nothing is sent.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        super().__init__({"bytes": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rest = Signal(10, init=~0)  # the bits left, with ones after the stop bit
        left = Signal(range(11))
        cycles = Signal(range(self._divisor))
        m.d.comb += self.bytes.ready.eq(left == 0)
        m.d.sync += self.tx.eq((left == 0) | rest[0])
        with m.If(left == 0):
            with m.If(self.bytes.valid):
                m.d.sync += [rest.eq(Cat(Const(0, 1), self.bytes.payload, Const(1, 1))), left.eq(10), cycles.eq(0)]
        with m.Elif(cycles == self._divisor - 1):
            m.d.sync += [cycles.eq(0), rest.eq(rest >> 1), left.eq(left - 1)]
        with m.Else():
            m.d.sync += cycles.eq(cycles + 1)
        return m


class UartReceiver(wiring.Component):
    """Begins with the falling edge of a start bit and samples each bit in its middle. A byte whose start or stop bit is
    missing is dropped.

    Parameters
    ----------
    divisor
        Cycles per bit, :data:`LEAST_DIVISOR` or more.

    Members
    -------
    rx
        The wire, asynchronous to the clock.
    bytes
        The bytes received.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        super().__init__({"rx": In(1, init=1), "bytes": Out(stream.Signature(8, always_ready=True))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wire = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, wire, init=1)
        cycles = Signal(range(self._divisor))
        left = Signal(range(11))
        held = Signal(8, reset_less=True)
        m.d.sync += self.bytes.valid.eq(0)
        m.d.comb += self.bytes.payload.eq(held)
        with m.If(left == 0):
            # Half a bit after the edge; the synchronizer delays all bits alike by two cycles.
            m.d.sync += cycles.eq(self._divisor // 2)
            with m.If(~wire):
                m.d.sync += left.eq(10)
        with m.Elif(cycles == self._divisor - 1):
            m.d.sync += [cycles.eq(0), left.eq(left - 1)]
            with m.If(left == 10):
                with m.If(wire):
                    m.d.sync += left.eq(0)
            with m.Elif(left == 1):
                m.d.sync += self.bytes.valid.eq(wire)
            with m.Else():
                m.d.sync += held.eq(Cat(held[1:], wire))
        with m.Else():
            m.d.sync += cycles.eq(cycles + 1)
        return m
