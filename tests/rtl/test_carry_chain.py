"""A sum whose operands are computed in the cells of a carry chain equals the sum of these operands."""

from __future__ import annotations

from itertools import product

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from openmxu.rtl.fpga.carry_chain import chained_sum
from openmxu.rtl.fpga.target import Family, Target
from tb.cells import OnTarget

SUMS = {
    "selected": (3, lambda a, b, c: (a & c) | (b & ~c), lambda a, b, c: 0),
    "selected, less one": (3, lambda a, b, c: (a & c) | (b & ~c), lambda a, b, c: -1),
    "inverted and gated": (4, lambda a, b, c, d: a ^ b, lambda a, b, c, d: c & d),
    "one of two added": (4, lambda a, b, c, d: a, lambda a, b, c, d: (b & d) | (c & ~d)),
    "one of two, less another": (4, lambda a, b, c, d: (b & d) | (c & ~d), lambda a, b, c, d: ~a),
    "plain": (2, lambda a, b: a, lambda a, b: b),
}


class Sum(wiring.Component):
    """One of these sums with a carry input; its last input is a flag if there are more than two."""

    def __init__(self, name: str, width: int) -> None:
        self.count, self.first, self.second = SUMS[name]
        self.width = width
        inputs = {f"input_{index}": In(width) for index in range(self.count - 1)}
        super().__init__(inputs | {"last": In(1 if self.count > 2 else width), "carry": In(1), "total": Out(width)})

    @property
    def inputs(self) -> list[Signal]:
        return [*(getattr(self, f"input_{index}") for index in range(self.count - 1)), self.last]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = chained_sum(m, platform, "sum", self.inputs, first=self.first, second=self.second, carry=self.carry)
        m.d.comb += self.total.eq(total)
        return m

    def compute(self, values: tuple[int, ...], carry: int) -> int:
        mask = (1 << self.width) - 1
        vectors = [mask * value if len(port) == 1 else value for port, value in zip(self.inputs, values, strict=True)]
        return ((self.first(*vectors) & mask) + (self.second(*vectors) & mask) + carry) & mask


@pytest.mark.parametrize("family", [Family.GENERIC, Family.ECP5])
@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("name", SUMS)
def test_every_sum(name: str, width: int, family: Family) -> None:
    unit = Sum(name, width)
    simulator = Simulator(OnTarget(unit, Target(family)))

    async def check(context) -> None:
        for *values, carry in product(*(range(1 << len(port)) for port in [*unit.inputs, unit.carry])):
            for port, value in zip([*unit.inputs, unit.carry], [*values, carry], strict=True):
                context.set(port, value)
            assert context.get(unit.total) == unit.compute(tuple(values), carry), (values, carry)

    simulator.add_testbench(check)
    simulator.run()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (lambda a, b, c, d: a & c, lambda a, b, c, d: b & c, "the carry must follow from the first two inputs"),
        (lambda a, b, c, d: a, lambda a, b, c, d: b & ~d, "where the last two inputs are zero"),
    ],
)
def test_operands_that_a_cell_cannot_compute(first, second, message: str) -> None:
    inputs = [Signal(2), Signal(2), Signal(2), Signal(2)]
    m = Module()
    with pytest.raises(ValueError, match=message):
        chained_sum(m, Target(Family.ECP5), "sum", inputs, first=first, second=second)
    Fragment.get(m, None)
