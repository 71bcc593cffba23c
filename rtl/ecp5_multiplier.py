"""Multiplier of a processing element in a multiplier block of an ECP5."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal, Value

from openmxu.rtl.multiplier import OPERAND_WIDTH, PRODUCT_WIDTH, Multiplier

__all__ = ["Ecp5Multiplier"]

_FACTOR_WIDTH = 18


class Ecp5Multiplier(Multiplier):
    """A MULT18X18D, whose own registers hold activation, weight and product.

    The factors are the upper halves of the block's, because constant bits need no wires, and a sign that is extended
    does.

    Members
    -------
    activation, weight, load, addends
        As of a :class:`Multiplier`.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product = Signal(2 * _FACTOR_WIDTH)
        unused = Const(0, _FACTOR_WIDTH - OPERAND_WIDTH)
        m.submodules.block = Instance(
            "MULT18X18D",
            p_REG_INPUTA_CLK="CLK0",
            p_REG_INPUTA_CE="CE0",
            p_REG_INPUTB_CLK="CLK0",
            p_REG_INPUTB_CE="CE1",
            p_REG_PIPELINE_CLK="NONE",
            p_REG_OUTPUT_CLK="CLK0",
            p_REG_OUTPUT_CE="CE0",
            p_GSR="DISABLED",
            p_RESETMODE="SYNC",
            i_CLK0=ClockSignal(),
            i_CE0=Const(1),
            i_CE1=self.load,
            i_SIGNEDA=Const(1),
            i_SIGNEDB=Const(1),
            i_SOURCEA=Const(0),
            i_SOURCEB=Const(0),
            **_bits("i_A", Cat(unused, self.activation)),
            **_bits("i_B", Cat(unused, self.weight)),
            **_bits("o_P", product),
        )
        m.d.comb += self.addends[0].eq(product[-PRODUCT_WIDTH:])
        return m


def _bits(port: str, value: Value) -> dict[str, Value]:
    """The ports of a block that has one for each bit."""
    return {f"{port}{place}": value[place] for place in range(len(value))}
