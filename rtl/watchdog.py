"""Watchdog: tells when nothing goes on although something should."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LIMIT_WIDTH", "Watchdog"]

LIMIT_WIDTH = 32
"""Bits of the number of cycles."""


class Watchdog(wiring.Component):
    """Counts the cycles in which something works and nothing goes on.

    Members
    -------
    limit
        That many cycles are too many; at least 1.
    works
        Something has begun and not ended.
    goes_on
        Something was transferred or has ended; or whoever should take it does not.
    expired
        It has been too many cycles since the last reset.
    """

    def __init__(self) -> None:
        super().__init__({"limit": In(LIMIT_WIDTH), "works": In(1), "goes_on": In(1), "expired": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cycles = Signal(LIMIT_WIDTH)
        stands = Signal()
        # A register of its own, because what goes on is known late in a cycle, and a carry chain follows.
        m.d.sync += stands.eq(self.works & ~self.goes_on)
        with m.If(stands):
            m.d.sync += cycles.eq(cycles + 1)
            with m.If(cycles >= self.limit):
                m.d.sync += self.expired.eq(1)
        with m.Else():
            m.d.sync += cycles.eq(0)
        return m
