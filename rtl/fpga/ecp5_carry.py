"""Carry chains of an ECP5 whose LUTs also compute the addend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value

__all__ = ["Half", "add", "add_or_subtract", "add_product", "add_two_products", "chain"]


def _init(propagate: int, generate: int) -> Const:
    """The truth table of a half: the upper entries, selected by D = 1, and the carry's entries, over A and B."""
    return Const(propagate << 8 | generate, 16)


# A half of the block adds LUT4(A, B, C, D) to its carry input. Where that is 0, its carry output is LUT2(A, B), the
# lowest four entries of the same table. So an addend of three or four inputs costs no more logic than one of two, if
# these entries are right both as the addend and as the carry.
_ADD = _init(0b0110_0110, 0b1010)
_ADD_PRODUCT = Const(sum((a ^ (b & c)) << (a | b << 1 | c << 2) for a in (0, 1) for b in (0, 1) for c in (0, 1)), 16)
_ADD_TWO_PRODUCTS = Const(sum((((i & 1) & (i >> 1 & 1)) ^ ((i >> 2 & 1) & (i >> 3 & 1))) << i for i in range(16)), 16)
_ADD_OR_SUBTRACT = _init(0b1001_0110, 0b1010)

Half = tuple[Value, Value, Value, Value]
"""Inputs A to D of a bit."""


def add(m: Module, name: str, first: Value, second: Value, width: int) -> Signal:
    """The sum of two numbers, like ``+``, but tools cannot merge it into a larger sum."""
    bits = zip(_extended(first, width), _extended(second, width), strict=True)
    return chain(m, name, _ADD, [(a, b, Const(0, 1), Const(1, 1)) for a, b in bits])


def add_product(m: Module, name: str, first: Value, factor: Value, bit: Value, width: int) -> Signal:
    """``first + factor * bit``."""
    bits = zip(_extended(first, width), _extended(factor, width), strict=True)
    return chain(m, name, _ADD_PRODUCT, [(a, b, bit, Const(0, 1)) for a, b in bits])


def add_two_products(
    m: Module, name: str, factor: Value, low: Value, high: Value, width: int, *, start: int = 0
) -> Signal:
    """``factor * (low + 2 * high)``, for two bits; from bit ``start`` on, below which there must be no carry."""
    bits = zip(_extended(factor, width)[start:], _extended(factor << 1, width)[start:], strict=True)
    return chain(m, name, _ADD_TWO_PRODUCTS, [(low, one, high, two) for one, two in bits])


def add_or_subtract(m: Module, name: str, first: Value, second: Value, subtract: Value, width: int) -> Signal:
    """``first - second`` if ``subtract`` is set, else ``first + second``."""
    bits = zip(_extended(first, width), _extended(second, width), strict=True)
    return chain(m, name, _ADD_OR_SUBTRACT, [(a, b, subtract, Const(1, 1)) for a, b in bits], carry=subtract)


def _extended(value: Value, width: int) -> Value:
    """The lowest ``width`` bits of a number, sign-extended."""
    if len(value) >= width:
        return value[:width]
    return Cat(value, value[-1].replicate(width - len(value)))


def chain(m: Module, name: str, init: Const, halves: Sequence[Half], carry: Value | int = 0) -> Signal:
    """The sum bits of a chain whose cells have the same truth table, with a carry into the first one."""
    total = Signal(len(halves), name=name)
    unused = Signal(name=f"{name}_unused")
    carried = Value.cast(carry)
    padding: Half = (Const(0, 1),) * 4
    for number, (even, odd) in enumerate(zip_longest(halves[::2], halves[1::2], fillvalue=padding)):
        place = 2 * number
        carry_out = Signal(name=f"{name}_carry_{number}")
        inputs = {
            f"i_{port}{half}": bit
            for half, bits in enumerate((even, odd))
            for port, bit in zip("ABCD", bits, strict=True)
        }
        m.submodules[f"{name}_{number}"] = Instance(
            "CCU2C",
            p_INIT0=init,
            p_INIT1=init,
            p_INJECT1_0="NO",
            p_INJECT1_1="NO",
            i_CIN=carried,
            **inputs,
            o_S0=total[place],
            o_S1=total[place + 1] if place + 1 < len(halves) else unused,
            o_COUT=carry_out,
        )
        carried = carry_out
    return total
