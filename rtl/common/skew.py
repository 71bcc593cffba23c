"""Skew: a triangle of registers that delays lane i by i cycles."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Shape, ShapeLike, Signal, Value
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
        # One register for all lanes that wait in a stage, the last lane first: what stays is the lower part.
        width = Shape.cast(self._shape).width
        waiting: Value = Cat(Value.cast(self.straight[lane]) for lane in reversed(range(self.lanes)))
        for lane in range(self.lanes):
            own = (self.lanes - 1 - lane) * width
            m.d.comb += Value.cast(self.skewed[lane]).eq(waiting[own:])
            if own:
                stage = Signal(own, name=f"stage_{lane}", reset_less=True)
                m.d.sync += stage.eq(waiting[:own])
                waiting = stage
        return m
