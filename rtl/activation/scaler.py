"""Scaler: an int32 times a float32, exactly as float32 arithmetic has it, as a fixed-point number."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import FRACTION_BITS, REQUANTIZED_LIMIT, fixed_point
from openmxu.rtl.fpga.product import Product

__all__ = ["MAGNITUDE_WIDTH", "Scaler"]

_EXPONENT = signed(10)
"""Holds every exponent of a product: from -127 to 31 + 255 - 127 + 2."""

_INTEGER_BITS = REQUANTIZED_LIMIT.bit_length() - 1
"""Integer bits of a magnitude before it saturates."""

_FIXED_WIDTH = _INTEGER_BITS + FRACTION_BITS

_SMALLEST_EXPONENT = -14
"""Of the magnitudes that do not become 0: the last one that a 5-bit shift reaches."""

MAGNITUDE_WIDTH = _FIXED_WIDTH + 1
"""Bits of a magnitude, saturated ones included."""


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

    scale_delay = 7
    """Cycles from a total to its scale."""

    latency = 15
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

        def register(name: str, value: Value, shape: Shape | None = None) -> Signal:
            signal = Signal(Value.cast(value).shape() if shape is None else shape, name=name, reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        def delay(name: str, value: Value, cycles: int) -> Value:
            for stage in range(cycles):
                value = register(f"{name}_{stage}", value)
            return value

        def round_to_24(name: str, value: Value, sticky: Value) -> tuple[Value, Value]:
            """The upper 24 of 25 bits rounded to nearest even, with ``sticky`` for those below.

            After a carry 1.000, with ``carry`` for the exponent.
            """
            increment = value[0] & (sticky | value[1])
            rounded = Signal(25, name=name)
            m.d.comb += rounded.eq(value[1:] + increment)
            return Cat(rounded[:23], rounded[23] | rounded[24]), rounded[24]

        # 1: sign and magnitude, up to 2**31.
        sum_negative = delay("sum_negative", self.total[31], 7)
        normalized = register("magnitude_1", Mux(self.total[31], -self.total, self.total)[:32])

        # 2 to 6: the leading one moves to bit 31; `leading` is its place.
        leading = Const(0, 0)
        for stage, shift in enumerate((16, 8, 4, 2, 1), 2):
            is_low = normalized[32 - shift :] == 0
            normalized = register(f"normalized_{stage}", Mux(is_low, normalized << shift, normalized)[:32])
            leading = register(f"leading_{stage}", Cat(~is_low, leading))

        # 7: float32(total); a carry reaches the exponent in the next stage.
        mantissa, carry = round_to_24("rounded_sum", normalized[7:], normalized[:7].any())
        mantissa = register("sum_mantissa", mantissa)
        carry = register("sum_carry", carry)
        leading = register("leading_7", leading)
        is_zero = register("is_zero_7", ~normalized[31])

        # 8 to 10: 24 × 24 bits as four products of 12 × 12, which is what a DSP block takes.
        scale_mantissa = Cat(self.scale[:23], Const(1, 1))
        scale_exponent = self.scale[23:31]
        low_low = self._multiply(m, "low_low", mantissa[:12], scale_mantissa[:12])
        low_high = self._multiply(m, "low_high", mantissa[:12], scale_mantissa[12:])
        high_low = self._multiply(m, "high_low", mantissa[12:], scale_mantissa[:12])
        high_high = self._multiply(m, "high_high", mantissa[12:], scale_mantissa[12:])
        middle = register("middle", low_high + high_low)
        outer = register("outer", Cat(low_low, high_high))
        product = register("product", outer + (middle << 12), unsigned(48))
        leading = register("leading_8", leading + carry)
        exponent = register("exponent_8", scale_exponent - 127, _EXPONENT)
        exponent = delay("exponent_9", register("exponent_9", exponent + leading, _EXPONENT), 1)
        is_zero = delay("is_zero_8", is_zero | (scale_exponent == 0), 6)
        negative = delay("negative_8", sum_negative ^ self.scale[31], 7)
        m.d.comb += self.negative.eq(register("negative_15", negative))

        # 11: the leading one moves to bit 47.
        aligned = register("aligned", Mux(product[47], product, product << 1)[23:48])
        sticky = register("sticky", product[:22].any() | (product[47] & product[22]))
        exponent = register("exponent_11", exponent + product[47], _EXPONENT)

        # 12: the float32 product. What follows from the exponent is worked out for both values that it may have.
        mantissa, carry = round_to_24("rounded_product", aligned, sticky)
        mantissa = register("product_mantissa", mantissa)
        carry = register("product_carry", carry)
        top = _INTEGER_BITS - 1
        placed = []
        for increment in (0, 1):
            shift = (top - increment - exponent)[:5]
            saturates = exponent > top - increment
            vanishes = exponent < _SMALLEST_EXPONENT - increment
            placed.append(register(f"placed_{increment}", Cat(shift, saturates, vanishes)))

        # 13 to 15: fixed point. What leaves to the right is truncated.
        placed = register("placed_13", Mux(carry, placed[1], placed[0]))
        shift, saturates, vanishes = placed[:5], placed[5], placed[6]
        fixed = register("fixed_13", Cat(Const(0, _FIXED_WIDTH - 24), mantissa))
        fixed = Mux(shift[4], fixed >> 16, fixed)
        fixed = register("fixed_14", Mux(shift[3], fixed >> 8, fixed))
        shift = register("shift_14", shift[:3])
        counts = register("counts_14", ~(saturates | vanishes | is_zero))
        saturates = register("saturates_14", saturates & ~is_zero)
        for place in (2, 1, 0):
            fixed = Mux(shift[place], fixed >> (1 << place), fixed)
        m.d.comb += self.magnitude.eq(register("magnitude_15", Cat(Mux(counts, fixed, 0), saturates)))
        return m

    @staticmethod
    def _multiply(m: Module, name: str, first: Value, second: Value) -> Signal:
        m.submodules[name] = product = Product(first.shape(), second.shape())
        m.d.comb += [product.first.eq(first), product.second.eq(second)]
        return product.product
