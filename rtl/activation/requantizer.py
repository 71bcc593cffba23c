"""Requantizer: int32 totals, or two operands that are added, to the integers of the next layer."""

import numpy as np
from amaranth.hdl import Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import FRACTION_BITS, add_scaled, requantize
from openmxu.rtl.activation.column_state import ColumnState
from openmxu.rtl.activation.scaler import MAGNITUDE_WIDTH, Scaler
from openmxu.rtl.dispatch.commands import OutputLayout

__all__ = ["Requantizer"]


class Requantizer(wiring.Component):
    """Scale, rounding, zero point and clamp for one lane; one value per cycle.

    Computes :func:`openmxu.arch.numerics.requantize` of a total. With ``adds``, the scaled total is added to that of
    the total which came last for the same column, and rounded then: :func:`openmxu.arch.numerics.add_scaled`.

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
    group
        Column of the total that came ``addition_delay`` - 1 cycles before; columns come in turn.
    enable, adds
        A total came ``addition_delay`` cycles before; whether it is the second operand of an addition.
    output
        Zero point and limits of the value that leaves ``output_lead`` cycles later.
    value
        The lower 16 bits of the result, ``latency`` cycles after its total.
    """

    scale_delay = Scaler.scale_delay

    addition_delay = Scaler.latency

    output_lead = 3

    latency = Scaler.latency + 2 + output_lead
    """Cycles from a total to the result."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        super().__init__(
            {
                "total": In(signed(32)),
                "scale": In(32),
                "group": In(range(groups)),
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

        # 1: sign, and the first operand.
        shape = signed(MAGNITUDE_WIDTH + 2)
        m.submodules.first = first = ColumnState(shape, self._groups)
        fixed = Signal(shape)
        m.d.comb += [
            # Adding the inverse and 1 is one adder, negating and adding are two.
            fixed.eq(
                Mux(self.adds, first.value, 0)
                + (scaler.magnitude ^ scaler.negative.replicate(MAGNITUDE_WIDTH + 1)).as_signed()
                + scaler.negative
            ),
            first.group.eq(self.group),
            first.enable.eq(self.enable),
            first.next_value.eq(fixed),
        ]
        fixed = register("fixed", fixed, shape)

        # 2: round half to even, which in two's complement is the same for negative numbers.
        integer = fixed[FRACTION_BITS:].as_signed()
        increment = fixed[FRACTION_BITS - 1] & (fixed[: FRACTION_BITS - 1].any() | integer[0])
        integer_shape = signed(MAGNITUDE_WIDTH - FRACTION_BITS + 2)
        rounded = register("rounded", integer + increment, integer_shape)

        # 3 to 5: zero point, lower limit, upper limit.
        shifted = register("shifted", rounded + self.output.zero_point, integer_shape)
        minimum = register("minimum", self.output.minimum, signed(18))
        maximum = register("maximum", self.output.maximum, signed(18))
        maximum = register("maximum_1", maximum, signed(18))
        raised = register("raised", Mux(shifted < minimum, minimum, shifted), integer_shape)
        m.d.sync += self.value.eq(Mux(raised > maximum, maximum, raised))
        return m
