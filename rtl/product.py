"""Product: a multiplication whose result is registered."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.target import Family, Target

__all__ = ["Product"]

_FACTOR_WIDTH = 18
"""Of a multiplier block of an ECP5."""


class Product(wiring.Component):
    """Multiplies two numbers of up to 18 bits each; both signed, or both unsigned.

    On an ECP5 it is a MULT18X18D whose own register holds the product: from there to one in logic is as far as the
    multiplication takes.

    Members
    -------
    first, second
        Factors.
    product
        All bits of their product, a cycle later.
    """

    def __init__(self, first: ShapeLike, second: ShapeLike) -> None:
        shapes = Shape.cast(first), Shape.cast(second)
        if shapes[0].signed != shapes[1].signed or max(shape.width for shape in shapes) > _FACTOR_WIDTH:
            raise ValueError(f"factors must have the same sign and up to {_FACTOR_WIDTH} bits, not {shapes}")
        self._signed = shapes[0].signed
        width = shapes[0].width + shapes[1].width
        super().__init__(
            {"first": In(shapes[0]), "second": In(shapes[1]), "product": Out(Shape(width, signed=self._signed))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if Target.of(platform).family is Family.ECP5:
            self._use_block(m)
        else:
            product = Signal.like(self.product, reset_less=True)
            m.d.sync += product.eq(self.first * self.second)
            m.d.comb += self.product.eq(product)
        return m

    def _use_block(self, m: Module) -> None:
        # In the upper bits of a factor a sign need not be extended.
        factors = [Cat(Const(0, _FACTOR_WIDTH - len(factor)), factor) for factor in (self.first, self.second)]
        product = Signal(2 * _FACTOR_WIDTH)
        m.submodules.block = Instance(
            "MULT18X18D",
            p_REG_INPUTA_CLK="NONE",
            p_REG_INPUTB_CLK="NONE",
            p_REG_PIPELINE_CLK="NONE",
            p_REG_OUTPUT_CLK="CLK0",
            p_REG_OUTPUT_CE="CE0",
            p_GSR="DISABLED",
            p_RESETMODE="SYNC",
            i_CLK0=ClockSignal(),
            i_CE0=Const(1),
            i_SIGNEDA=Const(self._signed, 1),
            i_SIGNEDB=Const(self._signed, 1),
            i_SOURCEA=Const(0),
            i_SOURCEB=Const(0),
            **_bits("i_A", factors[0]),
            **_bits("i_B", factors[1]),
            **_bits("o_P", product),
        )
        m.d.comb += self.product.eq(product[-len(self.product) :])


def _bits(port: str, value: Value) -> dict[str, Value]:
    """The ports of a block that has one for each bit."""
    return {f"{port}{place}": value[place] for place in range(len(value))}
