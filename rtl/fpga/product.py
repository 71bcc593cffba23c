"""Product: a multiplication whose result is registered."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.ecp5_block import FACTOR_WIDTH, multiplier_block
from openmxu.rtl.fpga.target import Family, Target

__all__ = ["Product"]


class Product(wiring.Component):
    """Multiplies two numbers of up to 18 bits each; both signed, or both unsigned.

    On an ECP5 it is a MULT18X18D whose output register holds the product: the route from the block to a register in
    logic takes as long as the multiplication.

    Members
    -------
    first, second
        Factors.
    product
        All bits of their product, a cycle later.
    """

    def __init__(self, first: ShapeLike, second: ShapeLike) -> None:
        shapes = Shape.cast(first), Shape.cast(second)
        if shapes[0].signed != shapes[1].signed or max(shape.width for shape in shapes) > FACTOR_WIDTH:
            raise ValueError(f"factors must have the same sign and up to {FACTOR_WIDTH} bits, not {shapes}")
        self._signed = shapes[0].signed
        width = shapes[0].width + shapes[1].width
        super().__init__(
            {"first": In(shapes[0]), "second": In(shapes[1]), "product": Out(Shape(width, signed=self._signed))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if Target.of(platform).family is Family.ECP5:
            m.submodules.block = multiplier_block(self.first, self.second, self.product, is_signed=self._signed)
        else:
            product = Signal.like(self.product, reset_less=True)
            m.d.sync += product.eq(self.first * self.second)
            m.d.comb += self.product.eq(product)
        return m
