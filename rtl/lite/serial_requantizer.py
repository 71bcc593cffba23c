"""Serial requantizer: bias, scale, rounding, zero point and clamp of one value, bit after bit, in few logic cells."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import requantize
from openmxu.rtl.dispatch.commands import OutputLayout

__all__ = ["SerialRequantizer"]

_WORD = 32
"""Bits of a total, and cycles of a pass over it."""

_MANTISSA = 24
"""Bits of a float32's mantissa, the leading one included."""

_EXPONENT_OF_INTEGER = 127 + 23
"""Exponent of a float32 whose mantissa is the number itself."""

_SMALLEST_SHIFT = 6
"""A mantissa that is shifted less is 2**18 or more, and saturates."""

_LARGEST_SHIFT = 25
"""A mantissa that is shifted more, even one of 25 bits, is 1/2 or less, and rounds to 0."""


class SerialRequantizer(wiring.Component):
    """Computes :func:`openmxu.arch.numerics.requantize` of a total plus a bias, in at most ``cycles`` cycles.

    The total passes through one full adder: plus the bias, then negated if it is negative. What is below its 24 leading
    bits is rounded away, and the rest, lowest bit first, multiplies the scale's mantissa: every bit adds it, or not, to
    a register that moves to the right. What leaves that register is two bits, the last one and whether any before was
    set, which is all that rounding asks for. The register goes on to the right, rounded to a float32 on its way, until
    it is an integer, which passes through the adder again, now with the zero point, and beside the limits.

    Members
    -------
    start, total
        Begins, while it is not at work: int32.
    bias_byte, bias
        Which byte of the bias is to be there in the next cycle, and the byte. The first one is asked for with
        ``start``.
    scale
        Bits of a float32, from the cycle after ``start`` to the end. Exponent 0 counts as zero, exponent 255 saturates.
    output
        Zero point and limits, all the time.
    active, bit
        A bit of the lower eight of the result, lowest first, in eight successive cycles.
    done
        With the last one.
    """

    cycles = 1 + 2 * _WORD + 8 + 1 + (_MANTISSA + 1) + 1 + _LARGEST_SHIFT + 1 + _WORD + 8
    """From ``start`` to ``done`` at most, both included."""

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "total": In(signed(_WORD)),
                "bias_byte": Out(2),
                "bias": In(8),
                "scale": In(32),
                "output": In(OutputLayout),
                "active": Out(1),
                "bit": Out(1),
                "done": Out(1),
            }
        )

    @staticmethod
    def compute(
        totals: NDArray[np.int32],
        biases: NDArray[np.int32],
        scales: NDArray[np.float32],
        zero_point: int,
        minimum: int,
        maximum: int,
    ) -> NDArray[np.int32]:
        """The results, of which the lower eight bits leave, for arrays that broadcast."""
        sums = (np.asarray(totals, np.int64) + biases).astype(np.int32)
        return requantize(sums, scales, zero_point, minimum, maximum)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(range(_WORD))
        next_count = Signal.like(count)
        m.d.comb += next_count.eq(count + 1)
        m.d.sync += count.eq(next_count)
        m.d.comb += self.bias_byte.eq(next_count[3:])
        ends_pass = Signal()
        m.d.comb += ends_pass.eq(count == _WORD - 1)

        def bit_of(value: Signal) -> Signal:
            """The bit of a number that this cycle of a pass is for."""
            return Cat(value, value[-1].replicate(_WORD - len(value))).bit_select(count, 1)

        # The word that moves through the adder, its sign, and the place of its leading one.
        word = Signal(_WORD, reset_less=True)
        negative = Signal(reset_less=True)
        leading = Signal(range(_WORD), reset_less=True)
        is_zero = Signal(reset_less=True)
        carry = Signal(reset_less=True)
        shifts_word, adds_bias, finishes = Signal(), Signal(), Signal()

        # The product, which becomes an integer; of what left it, the last bit, and whether any before was set.
        product = Signal(_MANTISSA + 1, reset_less=True)
        guard, sticky = Signal(reset_less=True), Signal(reset_less=True)
        shifts_product, clears_product, multiplies, rounds_product = Signal(), Signal(), Signal(), Signal()
        mantissa = Cat(self.scale[: _MANTISSA - 1], Const(1, 1))

        operand, addend, total_bit = Signal(), Signal(), Signal()
        m.d.comb += [
            operand.eq(Mux(finishes, product[0], word[0]) ^ negative),
            addend.eq((adds_bias & self.bias.bit_select(count[:3], 1)) | (finishes & bit_of(self.output.zero_point))),
            total_bit.eq(operand ^ addend ^ carry),
        ]
        carry_out = (operand & addend) | (carry & (operand | addend))
        with m.If(shifts_word):
            m.d.sync += word.eq(Cat(word[1:], total_bit))

        increment = Signal()
        m.d.comb += increment.eq(guard & (sticky | Mux(shifts_product | finishes, product[0], word[0])))
        with m.If(clears_product):
            m.d.sync += product.eq(0)
        with m.Elif(shifts_product):
            # The increment of a number that moves to the right: half of it, plus what it carries out of the last bit.
            m.d.sync += product.eq(
                product[1:] + (mantissa & multiplies.replicate(_MANTISSA)) + (rounds_product & increment & product[0])
            )

        exponent = Signal(9)
        m.d.comb += exponent.eq(self.scale[23:31] + leading + carry)
        was_rounded = Signal(reset_less=True)
        saturates = Signal(reset_less=True)
        below, above, crossed = Signal(reset_less=True), Signal(reset_less=True), Signal(reset_less=True)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += next_count.eq(0)
                m.d.sync += [negative.eq(0), is_zero.eq(1), carry.eq(0)]
                with m.If(self.start):
                    m.d.sync += word.eq(self.total)
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.comb += [shifts_word.eq(1), adds_bias.eq(1)]
                m.d.sync += carry.eq(carry_out)
                self._find_leading(m, total_bit, count, leading, is_zero)
                m.d.sync += [guard.eq(0), sticky.eq(0)]
                with m.If(ends_pass):
                    m.d.sync += [negative.eq(total_bit), carry.eq(total_bit)]
                    m.next = "ALIGN"
                    with m.If(total_bit):
                        m.next = "NEGATE"
            with m.State("NEGATE"):
                m.d.comb += shifts_word.eq(1)
                m.d.sync += carry.eq(carry_out)
                self._find_leading(m, total_bit, count, leading, is_zero)
                with m.If(ends_pass):
                    m.next = "ALIGN"
            with m.State("ALIGN"):
                # 25 bits and more are rounded to 24.
                with m.If(leading[3:].all()):
                    m.d.comb += shifts_word.eq(1)
                    m.d.sync += [guard.eq(word[0]), sticky.eq(sticky | guard)]
                with m.If(~leading[3:].all() | (count[:3] == leading[:3])):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [clears_product.eq(1), next_count.eq(0)]
                m.d.sync += [carry.eq(increment), guard.eq(0), sticky.eq(0)]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += [shifts_word.eq(1), shifts_product.eq(1), multiplies.eq(word[0] ^ carry)]
                m.d.sync += [carry.eq(carry & word[0]), guard.eq(product[0]), sticky.eq(sticky | guard)]
                with m.If(count == Mux(leading[3:].all(), _MANTISSA - 1, leading)):
                    m.next = "EXPONENT"
                    with m.If(carry & word[0]):
                        m.next = "CARRY"
            with m.State("CARRY"):
                # Rounding made a power of two of it: so far it was all zeros.
                m.d.comb += [shifts_product.eq(1), multiplies.eq(1)]
                m.next = "EXPONENT"
            with m.State("EXPONENT"):
                m.d.comb += next_count.eq(exponent)
                m.d.sync += [was_rounded.eq(0), saturates.eq(0), negative.eq(negative ^ self.scale[31])]
                largest = _EXPONENT_OF_INTEGER - _SMALLEST_SHIFT
                m.next = "SHIFT"
                with m.If(is_zero | (self.scale[23:31] == 0) | (exponent < _EXPONENT_OF_INTEGER - _LARGEST_SHIFT)):
                    m.d.comb += clears_product.eq(1)
                    m.d.sync += [guard.eq(0), sticky.eq(0)]
                    m.next = "ROUND"
                with m.Elif((exponent > largest) | ((exponent == largest) & product[_MANTISSA])):
                    m.d.sync += saturates.eq(1)
                    m.next = "ROUND"
            with m.State("SHIFT"):
                m.d.comb += [shifts_product.eq(1), rounds_product.eq(~product[_MANTISSA] & ~was_rounded)]
                m.d.sync += [guard.eq(product[0]), sticky.eq(sticky | guard)]
                with m.If(rounds_product):
                    m.d.sync += [was_rounded.eq(1), guard.eq(product[0] ^ increment), sticky.eq(0)]
                with m.If(count == (_EXPONENT_OF_INTEGER - 1) % _WORD):
                    m.next = "ROUND"
            with m.State("ROUND"):
                m.d.comb += next_count.eq(0)
                # To subtract is to add what is inverted, and 1.
                m.d.sync += [
                    carry.eq((guard & (sticky | product[0])) ^ negative),
                    below.eq(0),
                    above.eq(0),
                    crossed.eq(0),
                ]
                m.next = "FINISH"
            with m.State("FINISH"):
                m.d.comb += [finishes.eq(1), shifts_word.eq(1), shifts_product.eq(1)]
                minimum, maximum = bit_of(self.output.minimum), bit_of(self.output.maximum)
                m.d.sync += [
                    carry.eq(carry_out),
                    below.eq(_less(below, total_bit, minimum, ends_pass)),
                    above.eq(_less(above, maximum, total_bit, ends_pass)),
                    crossed.eq(_less(crossed, maximum, minimum, ends_pass)),
                ]
                with m.If(ends_pass):
                    m.next = "SELECT"
            with m.State("SELECT"):
                low = Mux(saturates, negative, below)
                high = Mux(low, crossed, Mux(saturates, 1, above))
                m.d.comb += [
                    shifts_word.eq(1),
                    self.active.eq(1),
                    self.bit.eq(Mux(high, bit_of(self.output.maximum), Mux(low, bit_of(self.output.minimum), word[0]))),
                ]
                with m.If(count[:3] == 7):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m

    @staticmethod
    def _find_leading(m: Module, bit: Signal, count: Signal, leading: Signal, is_zero: Signal) -> None:
        """The last one of a pass is the leading one."""
        with m.If(bit):
            m.d.sync += [leading.eq(count), is_zero.eq(0)]


def _less(so_far: Signal, left: Signal, right: Signal, is_sign: Signal) -> Signal:
    """Whether a number is less than another one, from the lowest bit on; of the sign, 1 is the lesser one."""
    return Mux(left == right, so_far, left ^ ~is_sign)
