"""Requantizer: int32 sums to the integers of the next layer, in exact float32 arithmetic."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import requantize
from openmxu.rtl.commands import OutputLayout

__all__ = ["Requantizer"]

_EXPONENT = signed(10)
"""Holds every exponent of a product: from -127 to 31 + 255 - 127 + 2."""

_INTEGER_BITS = 18
"""Integer bits of a rounded product before it saturates to 2**18, ``numerics.REQUANTIZED_LIMIT``."""


class Requantizer(wiring.Component):
    """Bias, scale, rounding, zero point and clamp for one lane; one value per cycle.

    Computes :func:`openmxu.arch.numerics.requantize` of ``accumulator + bias``: the sum wraps to 32 bits, becomes a
    float32 (round to nearest even), is multiplied by ``scale`` as float32, rounded half to even to an integer, and gets
    zero point and limits. Exact, because a float32 product is one 24 × 24-bit multiplication and a rounding.

    Members
    -------
    accumulator, bias
        int32.
    scale
        Bits of a float32. Exponent 0 counts as zero, exponent 255 saturates.
    byte
        Which byte of the sum to pass through as ``sum_byte``.
    output
        Zero point and limits of the value that leaves ``output_lead`` cycles later.
    value
        The result, ``latency`` cycles after its inputs.
    sum_byte
        The chosen byte of ``accumulator + bias``, at the same time.
    """

    output_lead = 3

    latency = 19
    """Cycles from the inputs to the result."""

    def __init__(self) -> None:
        super().__init__(
            {
                "accumulator": In(signed(32)),
                "bias": In(signed(32)),
                "scale": In(32),
                "byte": In(2),
                "output": In(OutputLayout),
                "value": Out(signed(18)),
                "sum_byte": Out(8),
            }
        )

    @staticmethod
    def compute(
        accumulators: NDArray[np.int32],
        biases: NDArray[np.int32],
        scales: NDArray[np.float32],
        zero_point: int,
        minimum: int,
        maximum: int,
    ) -> NDArray[np.int32]:
        """What leaves as ``value``, for arrays that broadcast; ``zero_point`` and limits as in ``output``."""
        sums = np.asarray(accumulators, np.int32) + np.asarray(biases, np.int32)  # int32 arrays wrap
        return requantize(sums, scales, zero_point, minimum, maximum)

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

        def round_to_24(name: str, value: Value) -> tuple[Value, Value]:
            """The upper 24 bits rounded to nearest even; after a carry 1.000 with ``carry`` for the exponent."""
            rest = len(value) - 24
            increment = value[rest - 1] & (value[: rest - 1].any() | value[rest])
            rounded = Signal(25, name=name)
            m.d.comb += rounded.eq(value[rest:] + increment)
            return rounded[:24] | (rounded[24] << 23), rounded[24]

        # 1: the sum.
        total = register("total", self.accumulator + self.bias, signed(32))
        scale = register("scale_1", self.scale)
        byte = register("byte_1", self.byte)

        # 2: sign and magnitude, up to 2**31.
        negative = delay("negative", total[31] ^ scale[31], 14)
        magnitude = register("magnitude", Mux(total[31], -total, total)[:32])
        scale_mantissa = delay("scale_mantissa", Cat(scale[:23], Const(1, 1)), 5)
        scale_exponent = delay("scale_exponent", scale[23:31], 4)
        m.d.comb += self.sum_byte.eq(delay("sum_byte", total.word_select(byte, 8), self.latency - 1))

        # 3 to 5: the leading one moves to bit 31; `leading` is its place.
        normalized, leading = magnitude, Const(31, 5)
        for stage, shifts in ((3, (16,)), (4, (8, 4)), (5, (2, 1))):
            for shift in shifts:
                is_low = normalized[32 - shift :] == 0
                normalized = Mux(is_low, normalized << shift, normalized)[:32]
                leading = Mux(is_low, leading - shift, leading)[:5]
            normalized = register(f"normalized_{stage}", normalized)
            leading = register(f"leading_{stage}", leading)

        # 6: float32(sum); a carry reaches the exponent in the next stage.
        mantissa, carry = round_to_24("rounded_sum", normalized)
        mantissa = register("sum_mantissa", mantissa)
        carry = register("sum_carry", carry)
        exponent = register("exponent_6", leading + scale_exponent - 127, _EXPONENT)
        is_zero = register("is_zero_6", ~normalized[31] | (scale_exponent == 0))

        # 7 to 9: 24 × 24 bits as four products of 12 × 12, which is what a DSP block takes.
        low_low = register("low_low", mantissa[:12] * scale_mantissa[:12])
        low_high = register("low_high", mantissa[:12] * scale_mantissa[12:])
        high_low = register("high_low", mantissa[12:] * scale_mantissa[:12])
        high_high = register("high_high", mantissa[12:] * scale_mantissa[12:])
        middle = register("middle", low_high + high_low)
        outer = register("outer", Cat(low_low, high_high))
        product = register("product", outer + (middle << 12), unsigned(48))
        exponent = delay("exponent_8", register("exponent_7", exponent + carry, _EXPONENT), 2)
        is_zero = delay("is_zero_7", is_zero, 3)

        # 10: the leading one moves to bit 47.
        aligned = register("aligned", Mux(product[47], product, product << 1)[:48])
        exponent = register("exponent_10", exponent + product[47], _EXPONENT)

        # 11: the float32 product.
        mantissa, carry = round_to_24("rounded_product", aligned)
        mantissa = register("product_mantissa", mantissa)
        exponent = register("exponent_11", exponent + carry, _EXPONENT)
        is_zero = delay("is_zero_10", is_zero, 2)

        # 12 to 14: fixed point, 18 integer and 24 fraction bits. Below 0.5 everything rounds to 0.
        top = _INTEGER_BITS - 1
        shift = register("shift_12", (top - exponent)[:5])
        saturates = delay("saturates", (exponent > top) & ~is_zero, 3)
        vanishes = register("vanishes", is_zero | (exponent < -1))
        fixed = register("fixed_12", Cat(Const(0, _INTEGER_BITS), mantissa))
        fixed = Mux(shift[4], fixed >> 16, fixed)
        fixed = register("fixed_13", Mux(shift[3], fixed >> 8, fixed))
        shift = register("shift_13", shift[:3])
        vanishes = register("vanishes_13", vanishes)
        for place in (2, 1, 0):
            fixed = Mux(shift[place], fixed >> (1 << place), fixed)
        fixed = register("fixed_14", Mux(vanishes, 0, fixed))

        # 15 and 16: round half to even; sign.
        integer = fixed[24:]
        increment = fixed[23] & (fixed[:23].any() | fixed[24])
        rounded = register("rounded", Mux(saturates, 1 << _INTEGER_BITS, integer + increment))
        signed_integer = register("signed_integer", Mux(negative, -rounded, rounded), signed(_INTEGER_BITS + 2))

        # 17 to 19: zero point, lower limit, upper limit.
        shifted = register("shifted", signed_integer + self.output.zero_point, signed(_INTEGER_BITS + 2))
        minimum = register("minimum", self.output.minimum)
        maximum = delay("maximum", self.output.maximum, 2)
        raised = register("raised", Mux(shifted < minimum, minimum, shifted))
        m.d.sync += self.value.eq(Mux(raised > maximum, maximum, raised))
        return m
