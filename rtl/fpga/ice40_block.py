"""The multiplier block of an iCE40, as two products of magnitudes."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Mux, Signal, Value

from openmxu.rtl.fpga.multiplier import MAGNITUDE_WIDTH

__all__ = ["products_block", "sign_and_magnitude", "signed_product"]


def sign_and_magnitude(operand: Value) -> Value:
    """An operand from -255 to 255 as its magnitude with its sign above."""
    negative = operand[-1]
    return Cat(Mux(negative, -operand, operand)[:MAGNITUDE_WIDTH], negative)


def signed_product(product: Value, negative: Value) -> Value:
    """The block's output as a signed number."""
    # A negative product other than 0 is at least -255 * 255 = 511 - 2**16, so that its upper half is not 0.
    return Cat(product, negative & product[MAGNITUDE_WIDTH:].any()).as_signed()


def products_block(
    activations: Sequence[Value],
    weights: Sequence[Value],
    negative: Sequence[Value],
    products: Sequence[Signal],
    load: Value | None = None,
) -> Instance:
    """An SB_MAC16 as two 8 × 8-bit multipliers; it registers the products and negates them on their way out.

    Parameters
    ----------
    activations, weights
        Magnitudes: two of each, the lower half of the block first.
    negative
        For each product of the previous cycle, whether it is negated.
    products
        16 bits each, negated ones in two's complement.
    load
        If given, the block has registers for its factors, too: one for activations, taken in every cycle, and one for
        weights, taken when this is set.
    """
    halves = {
        f"p_{half}{name}": value
        for half in ("TOP", "BOT")
        # Zero plus or minus the registered product, with no carry.
        for name, value in (
            ("_8x8_MULT_REG", Const(1)),
            ("OUTPUT_SELECT", Const(0, 2)),
            ("ADDSUB_UPPERINPUT", Const(1)),
            ("ADDSUB_LOWERINPUT", Const(1, 2)),
            ("ADDSUB_CARRYSELECT", Const(0, 2)),
        )
    }
    registers = {} if load is None else {"p_A_REG": Const(1), "p_B_REG": Const(1)}
    return Instance(
        "SB_MAC16",
        p_MODE_8x8=Const(1),
        **halves,
        **registers,
        i_CLK=ClockSignal(),
        i_CE=Const(1),
        i_A=Cat(activations),
        i_B=Cat(weights),
        i_C=Const(0, 16),
        i_D=Const(0, 16),
        i_BHOLD=Const(0) if load is None else ~load,
        i_ADDSUBBOT=negative[0],
        i_ADDSUBTOP=negative[1],
        **{f"i_{port}": Const(0) for port in _UNUSED},
        o_O=Cat(products),
    )


_UNUSED = (
    *("AHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT"),
    *("OLOADTOP", "OLOADBOT", "OHOLDTOP", "OHOLDBOT", "CI", "ACCUMCI", "SIGNEXTIN"),
)
"""Inputs of the block that are not used."""
