"""The multiplier block of an ECP5, a MULT18X18D, adapted to the widths and signs of its users."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Signal, Value

__all__ = ["FACTOR_WIDTH", "multiplier_block"]

FACTOR_WIDTH = 18
"""Bits of a factor."""


def multiplier_block(
    first: Value, second: Value, product: Signal, *, is_signed: bool, load_second: Value | None = None
) -> Instance:
    """A block whose output register holds ``product``, all bits of the product of two factors.

    With ``load_second`` its input registers hold the factors as well: the first is taken in every cycle, the second
    when ``load_second`` is set. Factors use the upper bits of the block's inputs, because constant bits below them need
    no routing, and an extended sign above them does.
    """
    factors = [Cat(Const(0, FACTOR_WIDTH - len(factor)), factor) for factor in (first, second)]
    inputs = "NONE" if load_second is None else "CLK0"
    unused = Signal(2 * FACTOR_WIDTH - len(product))
    return Instance(
        "MULT18X18D",
        p_REG_INPUTA_CLK=inputs,
        p_REG_INPUTA_CE="CE0",
        p_REG_INPUTB_CLK=inputs,
        p_REG_INPUTB_CE="CE1",
        p_REG_PIPELINE_CLK="NONE",
        p_REG_OUTPUT_CLK="CLK0",
        p_REG_OUTPUT_CE="CE0",
        p_GSR="DISABLED",
        p_RESETMODE="SYNC",
        i_CLK0=ClockSignal(),
        i_CE0=Const(1),
        # Four blocks share four enables, and a constant other than that of CE0 would occupy another one.
        i_CE1=Const(1) if load_second is None else load_second,
        i_SIGNEDA=Const(is_signed, 1),
        i_SIGNEDB=Const(is_signed, 1),
        i_SOURCEA=Const(0),
        i_SOURCEB=Const(0),
        **_bits("i_A", factors[0]),
        **_bits("i_B", factors[1]),
        **_bits("o_P", Cat(unused, product)),
    )


def _bits(port: str, value: Value) -> dict[str, Value]:
    """The ports of a block with a separate port for each bit."""
    return {f"{port}{place}": value[place] for place in range(len(value))}
