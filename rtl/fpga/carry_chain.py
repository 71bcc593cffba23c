"""Sums on a carry chain whose cells also compute the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from amaranth.hdl import Const, Module, Signal, Value

from openmxu.rtl.fpga.ecp5_carry import chain
from openmxu.rtl.fpga.target import Family, Target

__all__ = ["chained_sum"]

_CELL_INPUTS = 4

Operand = Callable[..., Value | int]
"""A bit of an operand as a function of the same bit of each input."""


def chained_sum(
    m: Module,
    platform: object,
    name: str,
    inputs: Sequence[Value],
    *,
    first: Operand,
    second: Operand = lambda *inputs: 0,
    carry: Value | int = 0,
) -> Signal:
    """``first(*inputs) + second(*inputs) + carry``, wrapped to the width of the widest input.

    A cell of an ECP5's carry chain takes four inputs per bit, and synthesis uses two: it puts selections, inversions
    and gates before an adder into separate logic. Here the cell computes them.

    Parameters
    ----------
    name
        Prefix of the cells and of the sum.
    inputs
        Up to four, of equal width; inputs of one bit apply to every bit.
    first, second
        The operands, bit by bit: functions made of ``&``, ``|``, ``^`` and ``~``.
    carry
        One bit.

    Raises
    ------
    ValueError
        The cell cannot compute them: the carry of two equal operand bits must follow from the first two inputs, and
        where the third and the fourth are zero the cell's sum must be that carry.
    """
    width = max(len(value) for value in inputs)
    vectors = [value if len(value) == width else value.replicate(width) for value in inputs]
    if Target.of(platform).family is not Family.ECP5:
        total = Signal(width, name=name)
        m.d.comb += total.eq(first(*vectors) + second(*vectors) + carry)
        return total

    table = Const(_cell_table(len(inputs), first, second), 16)
    unused = [Const(1, 1).replicate(width)] * (_CELL_INPUTS - len(inputs))
    return chain(m, name, table, list(zip(*vectors, *unused, strict=True)), carry)


def _cell_table(count: int, first: Operand, second: Operand) -> int:
    """Contents of a cell's two lookup tables.

    The table of four inputs shows whether the operands differ; its lowest four entries are also a table of the first
    two inputs, which is the carry where the operands are equal.
    """
    differ: dict[tuple[int, ...], int] = {}
    carries: dict[tuple[int, ...], int] = {}
    for bits in product((0, 1), repeat=count):
        operands = first(*bits) & 1, second(*bits) & 1
        differ[bits] = operands[0] ^ operands[1]
        if operands[0] == operands[1] and carries.setdefault(bits[:2], operands[0]) != operands[0]:
            raise ValueError(f"the carry must follow from the first two inputs, but does not at {bits}")
    table = 0
    for place in range(1 << _CELL_INPUTS):
        bits = tuple(place >> index & 1 for index in range(_CELL_INPUTS))
        carry = carries.get(bits[:2], 0)
        if not any(bits[2:]):
            value = carry
            if count == _CELL_INPUTS and differ[bits] != carry:
                raise ValueError(f"where the last two inputs are zero the sum must be the carry, but is not at {bits}")
        else:
            value = differ[bits[:count]]
        table |= value << place
    return table
