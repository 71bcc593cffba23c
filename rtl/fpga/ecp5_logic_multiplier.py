"""Multiplier of a processing element in carry chains of an ECP5, for parts with too few multiplier blocks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Out

from openmxu.rtl.fpga.ecp5_carry import add, add_or_subtract, add_product, add_two_products
from openmxu.rtl.fpga.multiplier import MAGNITUDE_WIDTH, Multiplier

__all__ = ["Ecp5LogicMultiplier"]

_ROWS = MAGNITUDE_WIDTH // 2
"""Bits of the activation in each half of the product."""


class Ecp5LogicMultiplier(Multiplier):
    """Multiplies magnitudes in carry chains, each half of the activation's bits by itself.

    The first chain of a half computes the partial products of two bits and adds them, and each further one those of one
    more bit. The two halves are added to each other and to the partial sum a cycle later. Magnitudes need a row less
    than numbers in two's complement, and every row is shorter; the sign costs nothing where the product is added up.

    Members
    -------
    activation, weight, load, addends
        As of a :class:`~openmxu.rtl.fpga.multiplier.Multiplier`.
    halves, negative
        The product's magnitude is ``halves[0] + (halves[1] << 4)``; whether it is negative.
    """

    addend_count = 2

    def __init__(self) -> None:
        halves = data.ArrayLayout(MAGNITUDE_WIDTH + _ROWS, 2)
        super().__init__({"halves": Out(halves), "negative": Out(1)})

    @staticmethod
    def operand(m: Module, name: str, value: Value) -> Value:
        """The magnitude, with the sign above."""
        magnitude, negative = value[:MAGNITUDE_WIDTH], value[-1]
        zero = Const(0, MAGNITUDE_WIDTH)
        return Cat(add_or_subtract(m, name, zero, magnitude, negative, MAGNITUDE_WIDTH), negative)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        activation = Signal.like(self.activation, reset_less=True)
        weight = Signal.like(self.weight, reset_less=True)
        halves = Signal.like(Value.cast(self.halves), reset_less=True)
        negative = Signal(reset_less=True)
        products = [
            _rows(m, f"half_{index}", weight[:MAGNITUDE_WIDTH], activation[_ROWS * index : _ROWS * (index + 1)])
            for index in range(2)
        ]
        m.d.sync += [
            activation.eq(self.activation),
            halves.eq(Cat(products)),
            negative.eq(activation[-1] ^ weight[-1]),
        ]
        with m.If(self.load):
            m.d.sync += weight.eq(self.weight)
        m.d.comb += [Value.cast(self.halves).eq(halves), self.negative.eq(negative)]
        for index, addend in enumerate(self.addends):
            part = self.halves[index]
            m.d.comb += addend.eq(Mux(negative, -part, part) << index * _ROWS)
        return m

    def accumulate(self, m: Module, partial_sum: Value) -> Value:
        low, high = self.halves
        upper = add(m, "upper", high, Cat(low[_ROWS:], 0), len(high))
        magnitude = Cat(low[:_ROWS], upper, 0)
        return add_or_subtract(m, "total", partial_sum, magnitude, self.negative, len(partial_sum)).as_signed()


def _rows(m: Module, name: str, factor: Value, bits: Value) -> Value:
    """A number times four bits, all bits of the product.

    The lowest bit of each row is outside of the chains, which leaves them with an odd number of bits: together with the
    one that begins the chain they fill its cells.
    """
    width = len(factor)
    unsigned = Cat(factor, Const(0, 2))
    pair = Cat(
        factor[0] & bits[0],
        add_two_products(m, f"{name}_pair", unsigned, bits[0], bits[1], width + 2, start=1),
    )
    three = Cat(pair[:2], add_product(m, f"{name}_third", Cat(pair[2:], 0), unsigned, bits[2], width + 1))
    return Cat(three[:3], add_product(m, f"{name}_fourth", Cat(three[3:], 0), unsigned, bits[3], width + 1))
