"""Watchdog: tells when nothing goes on although something should."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2

__all__ = ["LIMIT_WIDTH", "Watchdog"]

LIMIT_WIDTH = 32
"""Bits of the number of cycles."""


class Watchdog(wiring.Component):
    """Counts the cycles in which something works and nothing goes on.

    Parameters
    ----------
    grain
        It expires when the limit has been exceeded by a number of cycles from 1 to this, a power of two: the coarser,
        the fewer bits are compared.

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

    def __init__(self, grain: int = 1) -> None:
        if grain < 1 or grain & (grain - 1):
            raise ValueError(f"grain must be a power of two, not {grain}")
        self._grain = grain
        super().__init__({"limit": In(LIMIT_WIDTH), "works": In(1), "goes_on": In(1), "expired": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cycles = Signal(LIMIT_WIDTH)
        stands = Signal()
        # Registers of their own, because what goes on is known late in a cycle, and a carry chain follows.
        works, goes_on = Signal(), Signal()
        m.d.sync += [works.eq(self.works), goes_on.eq(self.goes_on), stands.eq(works & ~goes_on)]
        with m.If(stands):
            m.d.sync += cycles.eq(cycles + 1)
            low = ceil_log2(self._grain)
            with m.If(cycles[low:] > self.limit[low:] if low else cycles >= self.limit):
                m.d.sync += self.expired.eq(1)
        with m.Else():
            m.d.sync += cycles.eq(0)
        return m
