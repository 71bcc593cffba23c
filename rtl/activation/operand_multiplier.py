"""Operand multiplier: an int32 total times an element of the second operand."""

import numpy as np
from amaranth.hdl import Cat, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.rtl.fpga.product import Product

__all__ = ["ELEMENT_WIDTH", "OperandMultiplier"]

ELEMENT_WIDTH = 17
"""Bits of a signed element: 16 bits minus a zero point of the same type."""

_LOW_BITS = 17


class OperandMultiplier(wiring.Component):
    """The lower 32 bits of a product, from two products that each fit a DSP block; one per cycle.

    Members
    -------
    total, element
        The factors.
    product
        The product ``latency`` cycles later, wrapped to 32 bits.
    """

    latency = 2
    """Cycles from the factors to the product."""

    def __init__(self) -> None:
        super().__init__({"total": In(signed(32)), "element": In(signed(ELEMENT_WIDTH)), "product": Out(signed(32))})

    @staticmethod
    def compute(totals: NDArray[np.int32], elements: NDArray[np.int32]) -> NDArray[np.int32]:
        """The values of ``product``."""
        return (np.asarray(totals, np.int64) * np.asarray(elements, np.int64)).astype(np.int32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Only the bits of the upper product below bit 32 matter, so it needs only as many bits of the element.
        high_bits = 32 - _LOW_BITS
        m.submodules.low = low = Product(signed(_LOW_BITS + 1), signed(ELEMENT_WIDTH))
        m.submodules.high = high = Product(signed(high_bits), signed(high_bits))
        m.d.comb += [
            low.first.eq(Cat(self.total[:_LOW_BITS], 0)),
            low.second.eq(self.element),
            high.first.eq(self.total[_LOW_BITS:]),
            high.second.eq(self.element[:high_bits]),
        ]
        upper = (low.product[_LOW_BITS:32] + high.product)[:high_bits]
        m.d.sync += self.product.eq(Cat(low.product[:_LOW_BITS], upper))
        return m
