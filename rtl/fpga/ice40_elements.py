"""Two processing elements that share a multiplier block of an iCE40."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from openmxu.rtl.fpga.ice40_block import products_block, signed_product
from openmxu.rtl.fpga.multiplier import MAGNITUDE_WIDTH
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, element_members

__all__ = ["Ice40Elements"]


class Ice40Elements(wiring.Component):
    """Two elements, one above the other, with one SB_MAC16 as two 8 × 8-bit multipliers.

    Operands are magnitudes with a sign bit above, so that eight bits are enough for each factor. The block registers
    the products and negates them on their way out.

    Parameters
    ----------
    partial_sum_width
        Bits of the partial sums.

    Members
    -------
    upper, lower
        See :class:`~openmxu.rtl.matrix.processing_element.ProcessingElement`; the two are not connected.
    """

    def __init__(self, partial_sum_width: int) -> None:
        self._partial_sum_width = partial_sum_width
        element = wiring.Signature(element_members(partial_sum_width)).flip()
        super().__init__({"upper": In(element), "lower": In(element)})

    @property
    def partial_sum_width(self) -> int:
        """Bits of the partial sums."""
        return self._partial_sum_width

    def elaborate(self, platform: object) -> Module:
        m = Module()
        factors, negative, products = [], [], []
        for name, element in (("upper", self.upper), ("lower", self.lower)):
            activation = Signal(OPERAND_WIDTH, name=f"activation_{name}", reset_less=True)
            next_weight = Signal(OPERAND_WIDTH, name=f"next_weight_{name}", reset_less=True)
            weight = Signal(OPERAND_WIDTH, name=f"weight_{name}", reset_less=True)
            partial_sum = Signal(signed(self.partial_sum_width), name=f"partial_sum_{name}", reset_less=True)
            swap = Signal(name=f"swap_{name}", reset_less=True)
            shift = Signal(name=f"shift_{name}", reset_less=True)
            is_negative = Signal(name=f"is_negative_{name}", reset_less=True)
            product = Signal(2 * MAGNITUDE_WIDTH, name=f"product_{name}")
            m.d.sync += [
                activation.eq(element.activation_in),
                swap.eq(element.swap_in),
                shift.eq(element.shift_in),
                is_negative.eq(activation[-1] ^ weight[-1]),
                partial_sum.eq(element.partial_sum_in + signed_product(product, is_negative)),
            ]
            with m.If(element.shift_in):
                m.d.sync += next_weight.eq(element.weight_in)
            with m.If(element.swap_in):
                m.d.sync += weight.eq(next_weight)
            m.d.comb += [
                element.activation_out.eq(activation),
                element.swap_out.eq(swap),
                element.shift_out.eq(shift),
                element.weight_out.eq(next_weight),
                element.partial_sum_out.eq(partial_sum),
            ]
            factors.append((activation[:MAGNITUDE_WIDTH], weight[:MAGNITUDE_WIDTH]))
            negative.append(is_negative)
            products.append(product)

        m.submodules.block = products_block(
            [activation for activation, _ in reversed(factors)],
            [weight for _, weight in reversed(factors)],
            negative[::-1],
            products[::-1],
        )
        return m
