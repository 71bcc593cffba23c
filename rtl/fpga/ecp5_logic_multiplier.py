"""Multiplier of a processing element in carry chains of an ECP5, for parts with too few multiplier blocks."""

from amaranth.hdl import Cat, Module, Signal, Value, signed

from openmxu.rtl.fpga.ecp5_carry import add, add_product, add_two_products, subtract_two_products
from openmxu.rtl.fpga.multiplier import OPERAND_WIDTH, PRODUCT_WIDTH, Multiplier

__all__ = ["Ecp5LogicMultiplier"]

_DIGIT_WIDTH = OPERAND_WIDTH + 2
"""Bits of the weight times two bits of the activation."""


class Ecp5LogicMultiplier(Multiplier):
    """Sums of partial products, the weight times two activation bits each, which carry chains compute as they add.

    No more than two adders follow each other within a cycle, neither here nor where the addends are added up.

    Members
    -------
    activation, weight, load, addends
        As of a :class:`~openmxu.rtl.fpga.multiplier.Multiplier`.
    """

    addend_count = 3

    def elaborate(self, platform: object) -> Module:
        m = Module()
        activation = Signal(signed(OPERAND_WIDTH), reset_less=True)
        weight = Signal(signed(OPERAND_WIDTH), reset_less=True)
        m.d.sync += activation.eq(self.activation)
        with m.If(self.load):
            m.d.sync += weight.eq(self.weight)

        digits = {
            place: add_two_products(m, f"digit_{place}", weight, activation[place], activation[place + 1], _DIGIT_WIDTH)
            for place in (1, 3, 5)
        }
        # The upper bit of the last digit is the sign.
        last = subtract_two_products(m, "digit_7", weight, activation[7], activation[8], _DIGIT_WIDTH)
        low = add_product(m, "low", Cat(0, digits[1]), weight, activation[0], OPERAND_WIDTH + 3)
        middle = Cat(digits[3][:2], add(m, "middle", digits[3][2:], digits[5], _DIGIT_WIDTH))
        for index, (part, place) in enumerate(((low, 0), (middle, 3), (last, 7))):
            kept = Signal(signed(len(part)), name=f"part_{index}", reset_less=True)
            m.d.sync += kept.eq(part)
            m.d.comb += self.addends[index].eq(kept << place)
        return m

    def accumulate(self, m: Module, partial_sum: Value) -> Value:
        low, middle, high = (Value.cast(addend) for addend in self.addends)
        width = len(partial_sum)
        product = Cat(low[:3], add(m, "lower", low[3:], middle[3:], PRODUCT_WIDTH - 3))
        upper = Cat(partial_sum[:7], add(m, "upper", partial_sum[7:], high[7:], width - 7))
        return add(m, "total", product, upper, width).as_signed()
