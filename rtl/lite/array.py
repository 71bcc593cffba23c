"""Array of the lite profile: S × S elements whose products are added column by column, in trees."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.fpga.ice40_block import sign_and_magnitude
from openmxu.rtl.fpga.multiplier import OPERAND_WIDTH, Multiplier
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.lite.ice40_multipliers import Ice40Multipliers
from openmxu.rtl.matrix.processing_element import multiplier_for
from openmxu.rtl.matrix.systolic_array import SystolicArray

__all__ = ["LiteArray", "element_operand"]


def element_operand(operand: Value, target: Target) -> Value:
    """An operand as the elements take it: on iCE40, its magnitude and its sign."""
    return sign_and_magnitude(operand) if target.family is Family.ICE40 else operand


class LiteArray(wiring.Component):
    """Multiplies rows of activations by the tile of weights that it holds; a row may enter in every cycle.

    For arrays that are so small that a row reaches all elements in one cycle: nothing is skewed, and partial sums do
    not pass from element to element but meet in a tree with a register behind each level. Elements have one weight; the
    next tile is loaded between instructions.

    Members
    -------
    activations
        A row of operands.
    weights
        Two rows of a tile, each operand as :func:`element_operand` makes it: an even row, and the next one.
    load
        One bit for each two rows of the array: they take the weights for the activations of this cycle and those that
        follow.
    sums
        Of S products each, ``latency`` cycles after the activations.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        size = config.size
        super().__init__(
            {
                "activations": In(data.ArrayLayout(signed(OPERAND_WIDTH), size)),
                "weights": In(data.ArrayLayout(data.ArrayLayout(OPERAND_WIDTH, size), 2)),
                "load": In(size // 2),
                "sums": Out(data.ArrayLayout(signed(config.partial_sum_width), size)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @staticmethod
    def latency(config: Config) -> int:
        """Cycles from a row of activations to its sums."""
        return Multiplier.latency + ceil_log2(config.size)

    @staticmethod
    def compute(activations: NDArray[np.integer], tile: NDArray[np.integer]) -> NDArray[np.int64]:
        """The sums of rows of activations, (rows, S) or (S,), times a tile of operands, (S, S)."""
        return SystolicArray.compute(activations, tile)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        target = Target.of(platform)
        activations = [element_operand(self.activations[row], target).as_unsigned() for row in range(self.config.size)]
        for column in range(self.config.size):
            if target.family is Family.ICE40:
                addends = self._blocks(m, activations, column)
            else:
                addends = self._multipliers(m, target, activations, column)
            m.d.comb += self.sums[column].eq(self._sum(m, addends, column))
        return m

    def _multipliers(self, m: Module, target: Target, activations: list[Value], column: int) -> list[Value]:
        """The products of a column, each as the sum of a multiplier's addends."""
        size, multipliers = self.config.size, target.array_multipliers
        products = []
        for row in range(size):
            in_logic = multipliers is not None and row * size + column >= multipliers
            element = multiplier_for(target, in_logic=in_logic)()
            name = f"{row}_{column}"
            m.submodules[f"element_{name}"] = element
            m.d.comb += [
                element.activation.eq(element.operand(m, f"activation_{name}", activations[row])),
                element.weight.eq(element.operand(m, f"weight_{name}", self.weights[row % 2][column])),
                element.load.eq(self.load[row // 2]),
            ]
            products.append(sum(element.addends[1:], element.addends[0]))
        return products

    def _blocks(self, m: Module, activations: list[Value], column: int) -> list[Value]:
        """The same, where two rows share a block."""
        products = []
        for pair in range(self.config.size // 2):
            block = Ice40Multipliers()
            m.submodules[f"elements_{2 * pair}_{column}"] = block
            m.d.comb += block.load.eq(self.load[pair])
            for index in range(2):
                m.d.comb += [
                    block.activations[index].eq(activations[2 * pair + index]),
                    block.weights[index].eq(self.weights[index][column]),
                ]
                products.append(block.addends[index])
        return products

    def _sum(self, m: Module, addends: list[Value], column: int) -> Value:
        """A register behind each addition of two."""
        while len(addends) > 1:
            sums: list[Value] = []
            for first, second in zip(addends[::2], addends[1::2], strict=True):
                total = first + second
                name = f"sum_{column}_{len(addends) // 2}_{len(sums)}"
                kept = Signal(signed(min(len(total), self.config.partial_sum_width)), name=name, reset_less=True)
                m.d.sync += kept.eq(total)
                sums.append(kept)
            addends = sums
        return addends[0]
