"""Multiplier of a processing element in a multiplier block of an ECP5."""

from amaranth.hdl import Module, Signal

from openmxu.rtl.fpga.ecp5_block import multiplier_block
from openmxu.rtl.fpga.multiplier import PRODUCT_WIDTH, Multiplier

__all__ = ["Ecp5Multiplier"]


class Ecp5Multiplier(Multiplier):
    """A MULT18X18D, whose own registers hold activation, weight and product.

    Members
    -------
    activation, weight, load, addends
        As of a :class:`Multiplier`.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product = Signal(PRODUCT_WIDTH)
        m.submodules.block = multiplier_block(
            self.activation, self.weight, product, is_signed=True, load_second=self.load
        )
        m.d.comb += self.addends[0].eq(product)
        return m
