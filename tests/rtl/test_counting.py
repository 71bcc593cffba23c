"""Comparisons and counters shared by several units, checked for all inputs of some widths."""

import itertools

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator

from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.counting import up_down


def evaluate(value: Value, inputs: list[Signal]) -> dict[tuple[int, ...], int]:
    """The results of an expression for all values of its inputs."""
    m = Module()
    output = Signal(len(value))
    m.d.comb += output.eq(value)
    results = {}

    async def look(ctx):
        for numbers in itertools.product(*(range(1 << len(signal)) for signal in inputs)):
            for signal, number in zip(inputs, numbers, strict=True):
                ctx.set(signal, number)
            await ctx.delay(1e-9)
            results[numbers] = ctx.get(output)

    simulator = Simulator(m)
    simulator.add_testbench(look)
    simulator.run()
    return results


@pytest.mark.parametrize("widths", [(1, 1), (4, 4), (5, 3), (3, 5)])
def test_is_less(widths):
    first, second = (Signal(width, name=name) for width, name in zip(widths, "ab", strict=True))
    results = evaluate(is_less(first, second), [first, second])
    assert results == {(a, b): a < b for a, b in itertools.product(range(1 << widths[0]), range(1 << widths[1]))}


@pytest.mark.parametrize("constant", [0, 1, 6, 7, 8, 20])
def test_is_less_than_a_constant(constant):
    value = Signal(4)
    assert evaluate(is_less(value, constant), [value]) == {(number,): number < constant for number in range(16)}
    assert evaluate(is_less(constant, value), [value]) == {(number,): constant < number for number in range(16)}


@pytest.mark.parametrize("width", [1, 2, 4])
def test_up_down(width):
    count, up, down = Signal(width), Signal(), Signal()
    results = evaluate(up_down(count, up, down), [count, up, down])
    assert results == {(n, u, d): (n + u - d) % (1 << width) for n, u, d in results}
    assert len(results) == 4 << width
