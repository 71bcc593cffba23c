"""Systolic array: the S × S grid of processing elements."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Module, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.rtl.fpga.ice40_block import sign_and_magnitude
from openmxu.rtl.fpga.ice40_elements import Ice40Elements
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement

__all__ = ["SystolicArray"]


class SystolicArray(wiring.Component):
    """Multiplies rows of activations by the tile of weights that it holds; a row may enter in every cycle.

    Row k of the array takes input lane k, column n makes output lane n. A row of activations is skewed: if lane 0
    enters in cycle t, lane k enters in cycle t + k, and output lane n leaves in cycle t + n + ``latency``.

    A tile enters from above while the array works. Its last row comes first: if row S - 1 - i of the tile enters
    column 0 in cycle t + i, it enters column n in cycle t + n + i, and ``shift`` of array row k is set in the cycles
    from t + k to t + S - 1. The tile may be swapped in by a row that enters in cycle t + S or later, and its successor
    may begin to enter in the cycle of the swapping row: a new tile every S cycles.

    Members
    -------
    activations
        Skewed operands; unused lanes hold anything.
    swap
        Makes element after element use the next tile, from that of lane 0 of the row of activations on.
    weights, shift
        Operands skewed by column; the bit that makes a row of elements take them.
    partial_sums
        Sums of S products, skewed by column.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        operands = data.ArrayLayout(signed(OPERAND_WIDTH), config.size)
        super().__init__(
            {
                "activations": In(operands),
                "swap": In(1),
                "weights": In(operands),
                "shift": In(config.size),
                "partial_sums": Out(data.ArrayLayout(signed(config.partial_sum_width), config.size)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @staticmethod
    def latency(config: Config) -> int:
        """Cycles from lane 0 of a row of activations to output lane 0."""
        return config.size + 2

    @staticmethod
    def compute(activations: NDArray[np.integer], tile: NDArray[np.integer]) -> NDArray[np.int64]:
        """The sums of rows of activations, (rows, S) or (S,), times a tile of operands, (S, S)."""
        return np.asarray(activations, np.int64) @ np.asarray(tile, np.int64)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.config.size
        target = Target.of(platform)
        elements = self._pairs(m) if target.family is Family.ICE40 else self._elements(m, target)

        def at_edge(operand: Value) -> Value:
            return sign_and_magnitude(operand) if target.family is Family.ICE40 else operand

        above: list[wiring.PureInterface] = [None] * size
        for row in range(size):
            activation, shift = at_edge(self.activations[row]), self.shift[row]
            # A row is a cycle behind the one above it, as a column is behind the one to its left.
            swap = self.swap if row == 0 else above[0].swap_out
            for column in range(size):
                element = elements[row][column]
                m.d.comb += [
                    element.activation_in.eq(activation),
                    element.swap_in.eq(swap),
                    element.shift_in.eq(shift),
                ]
                if above[column] is None:
                    m.d.comb += element.weight_in.eq(at_edge(self.weights[column]))
                else:
                    m.d.comb += [
                        element.weight_in.eq(above[column].weight_out),
                        element.partial_sum_in.eq(above[column].partial_sum_out),
                    ]
                activation, swap, shift = element.activation_out, element.swap_out, element.shift_out
                above[column] = element

        for column in range(size):
            m.d.comb += self.partial_sums[column].eq(above[column].partial_sum_out)
        return m

    def _elements(self, m: Module, target: Target) -> list[list[wiring.PureInterface]]:
        """The elements row by row; the first ones use multiplier blocks, as many as the target has for them."""
        size, multipliers = self.config.size, target.array_multipliers
        rows: list[list[wiring.PureInterface]] = []
        for row in range(size):
            rows.append([])
            for column in range(size):
                in_logic = multipliers is not None and row * size + column >= multipliers
                element = ProcessingElement(self.config.partial_sum_width, in_logic=in_logic)
                m.submodules[f"element_{row}_{column}"] = element
                rows[-1].append(element)
        return rows

    def _pairs(self, m: Module) -> list[list[wiring.PureInterface]]:
        """The elements row by row; those of two rows share multipliers."""
        size = self.config.size
        rows: list[list[wiring.PureInterface]] = []
        for row in range(0, size, 2):
            pairs = [Ice40Elements(self.config.partial_sum_width) for _ in range(size)]
            for column, pair in enumerate(pairs):
                m.submodules[f"elements_{row}_{column}"] = pair
            rows += [[pair.upper for pair in pairs], [pair.lower for pair in pairs]]
        return rows
