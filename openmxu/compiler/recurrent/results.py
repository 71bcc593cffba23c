"""What steps of recurrent cells make of their sums: bytes, words, and functions from one table or two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.operations import Result
from openmxu.compiler.recurrent.encoding import fine_sigmoid_tables, half_tanh_tables, sigmoid_table, tanh_table

__all__ = ["byte", "fine_sigmoid_results", "half_tanh_results", "sigmoid_result", "tanh_result", "word"]


def byte(scale: float) -> Result:
    """An int8."""
    return Result(np.array(scale, np.float32), 0, -128, 127)


def word(scale: float | NDArray[np.float64]) -> Result:
    """An int16."""
    return Result(np.asarray(scale, np.float32), 0, -(1 << 15), (1 << 15) - 1)


def sigmoid_result(scale: NDArray[np.float64], step: float) -> Result:
    """The logistic function of sums times ``scale``, from a table of multiples of ``step``."""
    return _tabulated(scale, step, 0, sigmoid_table(step))


def tanh_result(scale: NDArray[np.float64], step: float) -> Result:
    """The hyperbolic tangent of sums times ``scale``, from a table of multiples of ``step``."""
    return _tabulated(scale, step, 0, tanh_table(step))


def fine_sigmoid_results(scale: NDArray[np.float64], step: float) -> tuple[Result, Result]:
    """The logistic function in two parts, high and low."""
    high, low = (_tabulated(scale, step, 0, table) for table in fine_sigmoid_tables(step))
    return high, low


def half_tanh_results(scale: NDArray[np.float64], step: float) -> tuple[Result, Result]:
    """Magnitudes of the hyperbolic tangent in two halves, positive and negative."""
    positive, negative = half_tanh_tables(step)
    return _tabulated(scale, step, -128, positive), _tabulated(scale, step, 127, negative)


def _tabulated(scale: NDArray[np.float64], step: float, zero_point: int, table: NDArray[np.uint8]) -> Result:
    return Result(np.asarray(scale / step, np.float32), zero_point, -128, 127, table)
