"""Requantizer: turns int32 totals, or the sum of two operands, into the integers of the next layer."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import FRACTION_BITS, add_scaled, requantize
from openmxu.rtl.activation.column_state import ColumnState
from openmxu.rtl.activation.scaler import MAGNITUDE_WIDTH, Scaler
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.dispatch.commands import OutputLayout
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["Requantizer"]

_SUM_WIDTH = MAGNITUDE_WIDTH + 2
"""Bits of a signed sum of two scaled operands."""

_PART = 4
"""Inputs of a logic cell."""


class Requantizer(wiring.Component):
    """Scale, rounding, zero point and clamp for one lane; one value per cycle.

    Computes :func:`openmxu.arch.numerics.requantize` of a total. With ``adds``, the scaled total is added to the
    previous one of the same column before it is rounded: :func:`openmxu.arch.numerics.add_scaled`.

    Parameters
    ----------
    groups
        Columns of a lane.

    Members
    -------
    total
        int32.
    scale
        Bits of a float32, ``scale_delay`` cycles after its total. Exponent 0 counts as zero, exponent 255 saturates.
    enable, adds
        There was a total ``addition_delay`` cycles before, for the columns in turn; it is the second operand of an
        addition. A total without ``enable`` has no result.
    output
        Zero point and limits of the value that leaves ``output_lead`` cycles later.
    value
        The lower 16 bits of the result, ``latency`` cycles after its total.
    """

    scale_delay = Scaler.scale_delay

    addition_delay = Scaler.latency

    output_lead = 3

    latency = Scaler.latency + 1 + output_lead
    """Cycles from a total to the result."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        super().__init__(
            {
                "total": In(signed(32)),
                "scale": In(32),
                "enable": In(1),
                "adds": In(1),
                "output": In(OutputLayout),
                "value": Out(16),
            }
        )

    @staticmethod
    def compute(
        totals: NDArray[np.int32], scales: NDArray[np.float32], zero_point: int, minimum: int, maximum: int
    ) -> NDArray[np.int32]:
        """The results of totals that are not added, for arrays that broadcast."""
        return requantize(totals, scales, zero_point, minimum, maximum)

    @staticmethod
    def compute_sum(
        first: NDArray[np.int32],
        first_scale: NDArray[np.float32],
        second: NDArray[np.int32],
        second_scale: NDArray[np.float32],
        zero_point: int,
        minimum: int,
        maximum: int,
    ) -> NDArray[np.int32]:
        """The results of two totals that are added, for arrays that broadcast."""
        return add_scaled(first, first_scale, second, second_scale, zero_point, minimum, maximum)

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def register(name: str, value: Value, shape: Shape) -> Signal:
            signal = Signal(shape, name=name, reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        m.submodules.scaler = scaler = Scaler()
        m.d.comb += [scaler.total.eq(self.total), scaler.scale.eq(self.scale)]

        # 1: sign, and addition of the first operand. The newest value of the state feeds the next stage.
        m.submodules.first = first = ColumnState(signed(_SUM_WIDTH), self._groups)
        m.d.comb += [
            first.enable.eq(self.enable),
            first.next_value.eq(
                chained_sum(
                    m,
                    platform,
                    "sum",
                    [Cat(scaler.magnitude, Const(0, 2)), scaler.negative, first.value.as_unsigned(), self.adds],
                    first=lambda magnitude, negative, first, adds: magnitude ^ negative,
                    second=lambda magnitude, negative, first, adds: first & adds,
                    carry=scaler.negative,
                )
            ),
        ]
        fixed = first.newest

        # 2: round half to even, which in two's complement is the same for negative numbers; zero point. The carry chain
        # rounds as well: 1 is added to each bit of `any_bit`, which generates a carry or propagates one, so that a
        # carry leaves `any_bit` if any of its bits is set, and leaves `half` if that is set as well.
        below_half = Cat(fixed[FRACTION_BITS], fixed[: FRACTION_BITS - 1])
        any_bit = Cat(below_half[start : start + _PART].any() for start in range(0, len(below_half), _PART))
        half = fixed[FRACTION_BITS - 1]
        zero_point = Cat(self.output.zero_point, self.output.zero_point[-1].replicate(3))
        total = chained_sum(
            m,
            platform,
            "shifted_sum",
            [Cat(any_bit, half, fixed[FRACTION_BITS:]), Cat(Const(-1, len(any_bit)), Const(0, 1), zero_point)],
            first=lambda fixed, added: fixed,
            second=lambda fixed, added: added,
        )
        shifted = register("shifted", total[len(any_bit) + 1 :].as_signed(), signed(_SUM_WIDTH - FRACTION_BITS))

        # 3 and 4: lower limit, upper limit. Values beyond all possible limits saturate to the width of the limits.
        minimum = register("minimum", self.output.minimum, signed(18))
        maximum = register("maximum_3", register("maximum_2", self.output.maximum, signed(18)), signed(18))
        is_beyond = ~shifted[-1] & shifted[17:-1].any()
        raised = Mux(
            _is_less(shifted, minimum), minimum, Cat(shifted[:17] | is_beyond.replicate(17), shifted[-1]).as_signed()
        )
        raised = register("raised", raised, signed(18))
        m.d.sync += self.value.eq(Mux(_is_less(maximum, raised), maximum, raised))
        return m


def _is_less(first: Value, second: Value) -> Value:
    """Signed ``first < second``: with inverted sign bits, the values compare like unsigned ones."""
    width = max(len(first), len(second))
    sign = 1 << (width - 1)
    return is_less(*(_extended(value, width) ^ sign for value in (first, second)))


def _extended(value: Value, width: int) -> Value:
    """The bits of a signed value, sign-extended to ``width``."""
    return Cat(value, value[-1].replicate(width - len(value)))
