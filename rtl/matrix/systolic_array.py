"""Systolic array: the S × S grid of processing elements."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import ClockSignal, Const, Instance, Module, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.rtl.fpga.ice40_block import sign_and_magnitude
from openmxu.rtl.fpga.ice40_elements import Ice40Elements
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement
from openmxu.rtl.matrix.systolic_row import SystolicRow
from openmxu.rtl.simulation.element_grid import Link, Source, grid_of_loops
from openmxu.rtl.verilog.shared_modules import SharedModules

__all__ = ["SystolicArray"]

_LINKS = (
    Link("activation_in", "activation_out", Source.LEFT),
    # A row is a cycle behind the one above it, as a column is behind the one to its left.
    Link("swap_in", "swap_out", Source.LEFT_OR_ABOVE),
    Link("shift_in", "shift_out", Source.LEFT),
    Link("weight_in", "weight_out", Source.ABOVE),
    Link("partial_sum_in", "partial_sum_out", Source.ABOVE),
)


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
        target = Target.of(platform)
        if target.family is Family.ICE40:
            self._connect_pairs(m)
        elif target.modules is not None and target.modules.loops:
            self._connect_loops(m, target, target.modules)
        else:
            self._connect_rows(m, target)
        return m

    def _connect_rows(self, m: Module, target: Target) -> None:
        size, multipliers = self.config.size, target.array_multipliers
        swap, weights, partial_sums = self.swap, self.weights, None
        above = size
        for index in range(size):
            own = size if multipliers is None else min(size, max(0, multipliers - index * size))
            row = SystolicRow(self.config, index, own, multipliers_above=above)
            above = own
            m.submodules[f"row_{index}"] = target.shared(row)
            m.d.comb += [
                row.activation.eq(self.activations[index]),
                row.swap.eq(swap),
                row.shift.eq(self.shift[index]),
                row.weights.eq(weights),
            ]
            if partial_sums is not None:
                m.d.comb += row.partial_sums.eq(partial_sums)
            # A row is a cycle behind the one above it, as a column is behind the one to its left.
            swap, weights, partial_sums = row.swap_out, row.weights_out, row.partial_sums_out
        m.d.comb += self.partial_sums.eq(partial_sums)

    def _connect_loops(self, m: Module, target: Target, modules: SharedModules) -> None:
        def write(name: str) -> str:
            element = ProcessingElement(self.config.partial_sum_width)
            return grid_of_loops(element, name, self.config.size, _LINKS, "partial_sum_out", target)

        m.submodules.grid = Instance(
            modules.add_verilog("element_grid", write),
            i_clk=ClockSignal(),
            i_activation_in=self.activations,
            i_swap_in=self.swap,
            i_shift_in=self.shift,
            i_weight_in=self.weights,
            i_partial_sum_in=Const(0, len(Value.cast(self.partial_sums))),
            o_partial_sum_out=self.partial_sums,
        )

    def _connect_pairs(self, m: Module) -> None:
        """Elements of two rows share multipliers."""
        size = self.config.size
        weights = [sign_and_magnitude(self.weights[column]) for column in range(size)]
        partial_sums: list[Value | None] = [None] * size
        below = self.swap
        for first in range(0, size, 2):
            pairs = [Ice40Elements(self.config.partial_sum_width) for _ in range(size)]
            for column, pair in enumerate(pairs):
                m.submodules[f"elements_{first}_{column}"] = pair
            for row, elements in enumerate(
                ([pair.upper for pair in pairs], [pair.lower for pair in pairs]), start=first
            ):
                swap, below = below, elements[0].swap_out
                activation, shift = sign_and_magnitude(self.activations[row]), self.shift[row]
                for column, element in enumerate(elements):
                    m.d.comb += [
                        element.activation_in.eq(activation),
                        element.swap_in.eq(swap),
                        element.shift_in.eq(shift),
                        element.weight_in.eq(weights[column]),
                    ]
                    if partial_sums[column] is not None:
                        m.d.comb += element.partial_sum_in.eq(partial_sums[column])
                    activation, swap, shift = element.activation_out, element.swap_out, element.shift_out
                    weights[column], partial_sums[column] = element.weight_out, element.partial_sum_out
        m.d.comb += (self.partial_sums[column].eq(sums) for column, sums in enumerate(partial_sums))
