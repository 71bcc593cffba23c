"""Processing element: one multiply-accumulate of the systolic array, weight stationary."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.rtl.fpga.ecp5_logic_multiplier import Ecp5LogicMultiplier
from openmxu.rtl.fpga.ecp5_multiplier import Ecp5Multiplier
from openmxu.rtl.fpga.logic_multiplier import LogicMultiplier
from openmxu.rtl.fpga.multiplier import OPERAND_WIDTH, Multiplier
from openmxu.rtl.fpga.target import Family, Target

__all__ = ["OPERAND_WIDTH", "ProcessingElement", "element_members", "multiplier_for"]


def element_members(partial_sum_width: int) -> dict[str, wiring.Member]:
    """The members of a :class:`ProcessingElement`."""
    return {
        "activation_in": In(signed(OPERAND_WIDTH)),
        "activation_out": Out(signed(OPERAND_WIDTH)),
        "swap_in": In(1),
        "swap_out": Out(1),
        "shift_in": In(1),
        "shift_out": Out(1),
        "weight_in": In(signed(OPERAND_WIDTH)),
        "weight_out": Out(signed(OPERAND_WIDTH)),
        "partial_sum_in": In(signed(partial_sum_width)),
        "partial_sum_out": Out(signed(partial_sum_width)),
    }


def multiplier_for(target: Target, *, in_logic: bool) -> type[Multiplier]:
    """The class of the target's multipliers, in a multiplier block or in logic."""
    if target.family is Family.ECP5:
        return Ecp5LogicMultiplier if in_logic else Ecp5Multiplier
    return LogicMultiplier if in_logic else Multiplier


class ProcessingElement(wiring.Component):
    """Multiplies each passing activation by its weight and adds the product to the partial sum from above.

    Activations and weights are encoded as the target's multiplier takes them, see
    :meth:`~openmxu.rtl.fpga.multiplier.Multiplier.operand`.

    Parameters
    ----------
    partial_sum_width
        Bits of the partial sums.
    in_logic
        Whether it multiplies in logic, without a multiplier block.

    Members
    -------
    activation_in, activation_out
        The activation, one cycle later to the right.
    swap_in, swap_out
        Travels with the activation: from this activation on, use the next weight.
    shift_in, shift_out
        Take ``weight_in`` as the next weight; travels to the right with the weights' skew.
    weight_in, weight_out
        The next weight, shifted down the column. It may be replaced in the very cycle in which it is swapped in.
    partial_sum_in, partial_sum_out
        The product of the activation of cycle t meets ``partial_sum_in`` of cycle t + 2; their sum leaves in t + 3.
    """

    def __init__(self, partial_sum_width: int, *, in_logic: bool = False) -> None:
        self._partial_sum_width = partial_sum_width
        self._in_logic = in_logic
        super().__init__(element_members(partial_sum_width))

    @property
    def partial_sum_width(self) -> int:
        """Bits of the partial sums."""
        return self._partial_sum_width

    @property
    def in_logic(self) -> bool:
        """Whether it multiplies in logic, without a multiplier block."""
        return self._in_logic

    @staticmethod
    def compute(
        activation: NDArray[np.int64], weight: NDArray[np.int64], partial_sum: NDArray[np.int64], width: int
    ) -> NDArray[np.int64]:
        """The partial sum that leaves: ``partial_sum + activation * weight``, wrapped to ``width`` bits."""
        total = np.asarray(partial_sum, np.int64) + np.asarray(activation, np.int64) * np.asarray(weight, np.int64)
        half = 1 << (width - 1)
        return (total + half) % (1 << width) - half

    def elaborate(self, platform: object) -> Module:
        m = Module()

        activation = Signal(signed(OPERAND_WIDTH), reset_less=True)
        next_weight = Signal(signed(OPERAND_WIDTH), reset_less=True)
        partial_sum = Signal(signed(self.partial_sum_width), reset_less=True)
        # Elements on a diagonal swap in the same cycle; one register for all of them would have wires across the array.
        # A bit that is in flight during a reset does no harm: it stays ahead of all that enters later.
        swap = Signal(reset_less=True, attrs={"keep": 1})
        shift = Signal(reset_less=True)

        # Activation and weight change together, so that multiplier and adder have only registers as inputs.
        m.submodules.multiplier = multiplier = multiplier_for(Target.of(platform), in_logic=self.in_logic)()
        m.d.comb += [
            multiplier.activation.eq(self.activation_in),
            multiplier.weight.eq(next_weight),
            multiplier.load.eq(self.swap_in),
        ]
        m.d.sync += [
            activation.eq(self.activation_in),
            swap.eq(self.swap_in),
            shift.eq(self.shift_in),
            partial_sum.eq(multiplier.accumulate(m, self.partial_sum_in)),
        ]
        with m.If(self.shift_in):
            m.d.sync += next_weight.eq(self.weight_in)

        m.d.comb += [
            self.activation_out.eq(activation),
            self.swap_out.eq(swap),
            self.shift_out.eq(shift),
            self.weight_out.eq(next_weight),
            self.partial_sum_out.eq(partial_sum),
        ]
        return m
