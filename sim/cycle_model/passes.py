"""The passes of an Activate, each over one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Register
from openmxu.sim.cycle_model.work import Work

__all__ = ["Passes"]


@dataclass(frozen=True)
class Passes:
    """Arrays with an element for each pass, in order.

    Attributes
    ----------
    row
        The row of the accumulators, or the first one of the unified buffer.
    is_sum
        Whether it is a row of the accumulators.
    elements
        Number of rows of the unified buffer: 0, 1 or 2. A pass without any row lies outside the plane.
    """

    row: NDArray[np.int64]
    is_sum: NDArray[np.bool_]
    elements: NDArray[np.int64]

    @classmethod
    def of(cls, work: Work, number: int) -> Passes:
        """The passes of instruction ``number``."""
        is_sum = not work.from_unified_buffer[number]
        width = 1 + int(work.source_wide[number])
        position, inside = _positions(work, number)
        first = int((work.accumulators if is_sum else work.source).first[number])
        row = first + position * width
        is_sums = inside & is_sum
        elements = np.where(inside & (not is_sum), width, 0)
        if work.has_operand[number]:
            width = 1 + int(work.operand_wide[number])
            operands = int(work.operand.first[number]) + width * np.arange(len(row))[:, np.newaxis]
            row = np.hstack([row, operands])
            is_sums = np.hstack([is_sums, np.zeros_like(operands, np.bool_)])
            elements = np.hstack([elements, np.full_like(operands, width)])
        repeats = int(work.result_bytes[number])
        return cls(*(np.repeat(array, repeats, axis=0).reshape(-1) for array in (row, is_sums, elements)))


def _positions(work: Work, number: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of each result's window, (results, positions), and whether they lie inside the plane."""
    results = np.arange(int(work.rows[number]))
    if work.by_parity[number]:
        results = np.concatenate([results[::2], results[1::2]])
    if not work.is_pooled[number]:
        return results[:, np.newaxis], np.ones((len(results), 1), np.bool_)
    window = work.words.register_of(number, Register.POOLING_WINDOW)
    plane = work.words.register_of(number, Register.POOLING_PLANE)
    output_y, output_x = np.divmod(results[:, np.newaxis, np.newaxis], plane["output_width"])
    y = output_y * window["stride_y"] - window["pad_top"] + np.arange(window["height"])[:, np.newaxis]
    x = output_x * window["stride_x"] - window["pad_left"] + np.arange(window["width"])
    inside = (y >= 0) & (y < plane["height"]) & (x >= 0) & (x < plane["width"])
    return (y * plane["width"] + x).reshape(len(results), -1), inside.reshape(len(results), -1)
