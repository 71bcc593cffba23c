"""Scaler: an int32 times a float32, bit-exact with float32 arithmetic, as a fixed-point number."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import FRACTION_BITS, REQUANTIZED_LIMIT, fixed_point
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.fpga.carry_chain import chained_sum
from openmxu.rtl.fpga.product import Product

__all__ = ["MAGNITUDE_WIDTH", "Scaler"]

MAGNITUDE_WIDTH = REQUANTIZED_LIMIT.bit_length() + FRACTION_BITS
"""Bits of a magnitude; the uppermost one is set only if it is saturated."""

_SPLIT = 18
"""Bits of the lower part of a mantissa: the factor width of a DSP block."""

_ROUNDED = 5
"""Lowest bits of a normalized total: below the mantissa and below the bit that is half of its last place."""

_PLACE_BIAS = 14
"""Bias from the sum of exponents to the place of a product: 128 to 159 for products from 2**-14 to 2**18."""


class Scaler(wiring.Component):
    """Multiplies in float32 arithmetic for one lane; one value per cycle.

    Computes :func:`openmxu.arch.numerics.fixed_point`: the total becomes a float32 (round to nearest even) and is
    multiplied by ``scale`` as float32. Exact, because a float32 product is one 24 × 24-bit multiplication and a
    rounding.

    Members
    -------
    total
        int32.
    scale
        Bits of a float32, ``scale_delay`` cycles after its total. Exponent 0 counts as zero, exponent 255 saturates.
    negative, magnitude
        The product with 24 fraction bits as sign and magnitude, ``latency`` cycles after its total. It is truncated,
        and saturates to 2**18; below 2**-14 it is 0.
    """

    scale_delay = 4
    """Cycles from a total to its scale."""

    latency = 10
    """Cycles from a total to its product."""

    def __init__(self) -> None:
        super().__init__(
            {"total": In(signed(32)), "scale": In(32), "negative": Out(1), "magnitude": Out(MAGNITUDE_WIDTH)}
        )

    @staticmethod
    def compute(totals: NDArray[np.int32], scales: NDArray[np.float32]) -> NDArray[np.int64]:
        """The products with their signs, for arrays that broadcast."""
        return fixed_point(totals, scales)

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def register(name: str, value: Value) -> Signal:
            signal = Signal(Value.cast(value).shape(), name=name, reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        def rounded(name: str, high: Value, low: Value, is_high: Value, increment: Value) -> Signal:
            """One of two values of 24 bits, plus the increment; 25 bits."""
            return chained_sum(
                m,
                platform,
                name,
                [Cat(high, Const(0, 1)), Cat(low, Const(0, 1)), is_high],
                first=lambda high, low, is_high: (high & is_high) | (low & ~is_high),
                carry=increment,
            )

        # 1: negative totals are inverted. The 1 that their magnitude lacks is added by the rounding, since the bits
        # shifted in from the right are inverted as well.
        negative = self.total[31]
        inverted = self.total[:31] ^ negative.replicate(31)
        zero_bytes = register("zero_bytes", _leading_zeros(inverted[23:], inverted[15:23], inverted[7:15]))
        total = register("total_1", self.total)

        # 2 and 3: the leading one moves to bit 30, or to bit 29.
        negative = total[31]
        before = register("normalized_2", _shift_left(total[:31], zero_bytes, 8) ^ negative.replicate(31))
        negative_2 = register("negative_2", negative)
        zero_bytes = register("zero_bytes_2", zero_bytes)
        zero_pairs = _leading_zeros(before[29:], before[27:29], before[25:27])
        normalized = register("normalized_3", _shift_left(before, zero_pairs, 2, negative_2)[_ROUNDED:])
        negative = register("negative_3", negative_2)
        zeros = register("zeros_3", Cat(zero_pairs, zero_bytes))
        # All bits below `normalized` are zero; those that are shifted in always are.
        low_5, low_3, low_1 = (low == negative_2.replicate(len(low)) for low in (before[:5], before[:3], before[:1]))
        low_is_zero = Mux(zero_pairs[1], zero_pairs[0] | low_1, Mux(zero_pairs[0], low_3, low_5))
        low_is_zero = register("low_is_zero", low_is_zero)

        # 4: float32(total). Its exponent is 30 - zeros, or one more if it carries.
        is_high = normalized[-1]
        lowest = Mux(is_high, normalized[2], normalized[1])
        half = Mux(is_high, normalized[1], normalized[0])
        rest_is_zero = low_is_zero & (~is_high | (normalized[0] == negative))
        increment = Mux(negative, half | (rest_is_zero & lowest), half & (~rest_is_zero | lowest))
        total = rounded("rounded_total", normalized[2:], normalized[1:-1], is_high, increment)
        # The leading one, which 0 does not have, stays in place or becomes a carry.
        mantissa = register("total_mantissa", Cat(total[:23], normalized[-2:].any()))
        carry = register("total_carry", total[24])
        negative = register("negative_4", negative)
        zeros = register("zeros_4", Cat(~is_high, zeros))

        # 5 to 7: the product of both mantissas, 48 bits, from four products that each fit a DSP block.
        scale_mantissa = Cat(self.scale[:23], Const(1, 1))
        low_low = self._multiply(m, "low_low", mantissa[:_SPLIT], scale_mantissa[:_SPLIT])
        low_high = self._multiply(m, "low_high", mantissa[:_SPLIT], scale_mantissa[_SPLIT:])
        high_low = self._multiply(m, "high_low", mantissa[_SPLIT:], scale_mantissa[:_SPLIT])
        high_high = self._multiply(m, "high_high", mantissa[_SPLIT:], scale_mantissa[_SPLIT:])
        middle = register("middle", low_high + high_low)
        outer = register("outer", Cat(low_low[_SPLIT:], high_high))
        product = register("product", (outer + middle)[: 48 - _SPLIT])
        sticky = register("sticky_7", register("sticky_6", low_low[:_SPLIT].any()))
        exponent = chained_sum(
            m,
            platform,
            "exponent_sum",
            [Cat(self.scale[23:31], Const(0, 1)), Cat(~zeros, Const(0, 4))],
            first=lambda scale, leading: scale,
            second=lambda scale, leading: leading,
            carry=carry,
        )
        exponent = delayed(m, exponent, 3, "exponent")
        m.d.comb += self.negative.eq(delayed(m, negative ^ self.scale[31], 6, "negative"))

        # 8: the float32 product. At `place` 159 it is the fixed-point number; each place less shifts it right by one.
        is_high = product[-1]
        lowest = Mux(is_high, product[6], product[5])
        half = Mux(is_high, product[5], product[4])
        sticky = sticky | product[:4].any() | (is_high & product[4])
        mantissa = rounded("rounded_product", product[6:], product[5:-1], is_high, half & (sticky | lowest))
        mantissa = register("product_mantissa", mantissa)
        place = chained_sum(
            m,
            platform,
            "place_sum",
            [exponent, Const(_PLACE_BIAS, 9)],
            first=lambda exponent, bias: exponent,
            second=lambda exponent, bias: bias,
            carry=is_high,
        )
        place = register("place", place)
        is_zero = register("is_zero", ~product[-2:].any())

        # 9 and 10: fixed point. Bits shifted out to the right are truncated.
        shift = ~place[:5]
        fixed = Cat(Const(0, MAGNITUDE_WIDTH - 25), mantissa)
        fixed = _shift_right(_shift_right(fixed, shift[:2], 1), shift[2:4], 4)
        fixed = register("fixed_9", fixed)
        shift = register("shift_9", shift[4])
        is_inside = register("is_inside", place[5:] == 0b0100)
        saturates = register("saturates", (place[8] | (place[7] & place[5:7].any())) & ~is_zero)
        # The carry of the rounding alone makes the product 2**-14.
        is_smallest = register("is_smallest", (place == 127) & mantissa[24])
        fixed = Mux(is_inside, _shift_right(fixed, shift, 16), 0)
        smallest = is_smallest << (MAGNITUDE_WIDTH - 1 - 32)
        saturated = saturates << (MAGNITUDE_WIDTH - 1)
        m.d.comb += self.magnitude.eq(register("magnitude_10", (fixed | smallest | saturated)[:MAGNITUDE_WIDTH]))
        return m

    @staticmethod
    def _multiply(m: Module, name: str, first: Value, second: Value) -> Signal:
        m.submodules[name] = product = Product(first.shape(), second.shape())
        m.d.comb += [product.first.eq(first), product.second.eq(second)]
        return product.product


def _leading_zeros(*parts: Value) -> Value:
    """Number of leading parts that are zero, of three; two bits."""
    first, second, third = (part.any() for part in parts)
    return Cat(~first & (second | ~third), ~(first | second))


def _shift_left(value: Value, count: Value, bits: int, fill: Value | int = 0) -> Value:
    """Shift ``value`` left by ``count`` times ``bits``; ``count`` has two bits."""
    filled = Cat(Value.cast(fill).replicate(3 * bits), value)
    steps = [filled[bits * (3 - step) :][: len(value)] for step in range(4)]
    return Mux(count[1], Mux(count[0], steps[3], steps[2]), Mux(count[0], steps[1], steps[0]))


def _shift_right(value: Value, count: Value, bits: int) -> Value:
    """Shift ``value`` right by ``count`` times ``bits``."""
    for place in range(len(count)):
        value = Mux(count[place], value[bits << place :], value)
    return value
