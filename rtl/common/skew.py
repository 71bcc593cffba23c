"""Skew: a triangle of registers that delays lane i by i cycles."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skew"]


class Skew(wiring.Component):
    """Delays lane i of a vector by i cycles.

    Parameters
    ----------
    shape
        Shape of one lane.
    lanes
        Number of lanes.

    Members
    -------
    straight, skewed
        Arrays of ``lanes`` elements.
    """

    def __init__(self, shape: ShapeLike, lanes: int) -> None:
        self._shape = shape
        self._lanes = lanes
        layout = data.ArrayLayout(shape, lanes)
        super().__init__({"straight": In(layout), "skewed": Out(layout)})

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return self._lanes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for lane in range(self.lanes):
            value = self.straight[lane]
            for stage in range(lane):
                delayed = Signal(self._shape, name=f"lane_{lane}_stage_{stage}", reset_less=True)
                m.d.sync += delayed.eq(value)
                value = delayed
            m.d.comb += self.skewed[lane].eq(value)
        return m
