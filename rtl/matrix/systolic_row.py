"""Systolic row: the processing elements that one lane of activations passes."""

from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, sum_width
from openmxu.rtl.fpga.target import Target
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement, multiplier_for

__all__ = ["SystolicRow"]


class SystolicRow(wiring.Component):
    """One row of :class:`~openmxu.rtl.matrix.systolic_array.SystolicArray`, skewed by column like it.

    Parameters
    ----------
    config
        Sizes of the core.
    above
        Number of rows above this one: partial sums are as wide as sums of so many products.
    multipliers
        Elements that may use a multiplier block, from the left; the others multiply in logic. ``None`` for all.
    multipliers_above
        As many in the row above; ``None`` for all, or if there is none.

    Members
    -------
    activation, shift
        Enter the first element.
    swap, swap_out
        For the first element of this row, and of the row below.
    weights, partial_sums, weights_out, partial_sums_out
        From the row above, and for the row below. Weights are encoded as the elements that they come from take them.
    """

    def __init__(
        self, config: Config, above: int, multipliers: int | None = None, *, multipliers_above: int | None = None
    ) -> None:
        self._config = config
        # Not the number of rows itself: rows with sums of the same width share a module.
        self._sum_widths = sum_width(above), sum_width(above + 1)
        self._multipliers = config.size if multipliers is None else multipliers
        self._multipliers_above = config.size if multipliers_above is None else multipliers_above
        weights = data.ArrayLayout(signed(OPERAND_WIDTH), config.size)
        sums, sums_out = (data.ArrayLayout(signed(width), config.size) for width in self._sum_widths)
        super().__init__(
            {
                "activation": In(signed(OPERAND_WIDTH)),
                "swap": In(1),
                "shift": In(1),
                "weights": In(weights),
                "partial_sums": In(sums),
                "swap_out": Out(1),
                "weights_out": Out(weights),
                "partial_sums_out": Out(sums_out),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        target = Target.of(platform)
        activation, swap, shift = self.activation, self.swap, self.shift
        in_logic = multiplier_for(target, in_logic=True)
        for column in range(self._config.size):
            weight = self.weights[column]
            # On their way operands are encoded once, in front of the first element in logic.
            if column == self._multipliers:
                activation = in_logic.operand(m, "activation", activation)
            if self._multipliers <= column < self._multipliers_above:
                weight = in_logic.operand(m, f"weight_{column}", weight)
            element = ProcessingElement(self._sum_widths[1], in_logic=column >= self._multipliers)
            m.submodules[f"element_{column}"] = target.shared(element)
            m.d.comb += [
                element.activation_in.eq(activation),
                element.swap_in.eq(swap),
                element.shift_in.eq(shift),
                element.weight_in.eq(weight),
                element.partial_sum_in.eq(self.partial_sums[column]),
                self.weights_out[column].eq(element.weight_out),
                self.partial_sums_out[column].eq(element.partial_sum_out),
            ]
            if column == 0:
                m.d.comb += self.swap_out.eq(element.swap_out)
            activation, swap, shift = element.activation_out, element.swap_out, element.shift_out
        return m
