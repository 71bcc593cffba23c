"""Real numbers of a recurrent cell as the integers that array, accumulators and tables hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.operations import byte_table

__all__ = [
    "FINE_LEVELS",
    "HALF_LEVELS",
    "HIGH_FACTOR",
    "SIGMOID_LEVELS",
    "TANH_LEVELS",
    "Encoded",
    "Operand",
    "Weights",
    "encode",
    "fine_sigmoid_tables",
    "half_tanh_tables",
    "sigmoid_table",
    "tanh_table",
]

SIGMOID_LEVELS = 255
"""What a table's 1 is: sigmoids are uint8."""

TANH_LEVELS = 127
"""What a table's 1 is: hyperbolic tangents are int8."""

HIGH_FACTOR = 127
FINE_LEVELS = SIGMOID_LEVELS * HIGH_FACTOR
"""What 1 is where two tables make up a sigmoid: 127 times a uint8 plus an int8."""

HALF_LEVELS = 255
"""What 1 is where two tables make up a hyperbolic tangent: a uint8 for positive inputs minus one for negative ones."""

_LARGEST_SUM = 2.0**31 - 1

_SMALLEST_SCALE = 1e-30
"""Of sums whose weights are all 0."""


@dataclass(frozen=True)
class Operand:
    """What weights are multiplied by: its scale, and the largest magnitude of its integers."""

    scale: float
    largest: int


@dataclass(frozen=True)
class Weights:
    """Constant weights (units, inputs) as the model has them: integers, and a scale for each unit."""

    integers: NDArray[np.integer]
    scale: NDArray[np.float32]

    @property
    def real(self) -> NDArray[np.float64]:
        """The real weights."""
        return self.integers.astype(np.float64) * self.scale.astype(np.float64)[:, np.newaxis]


@dataclass(frozen=True)
class Encoded:
    """Weights for one sum.

    Attributes
    ----------
    weights : int16 arrays, (units, inputs)
        For each operand.
    bias : int32 array, (units,)
    scale : float64 array, (units,)
        What a sum of 1 means.
    """

    weights: tuple[NDArray[np.int16], ...]
    bias: NDArray[np.int32]
    scale: NDArray[np.float64]


def encode(parts: list[tuple[Weights, Operand]], bias: NDArray[np.float64], factor: int = 1) -> Encoded:
    """Weights of several operands whose products add up to one sum.

    All products of a unit must mean the same, operand scale × weight scale. Where the model's scales are so, its
    integers stay what they are; elsewhere weights are rounded anew to the coarsest of the scales.

    Parameters
    ----------
    factor
        A multiple of the sum must fit 32 bits as well.
    """
    products = [operand.scale * weights.scale.astype(np.float64) for weights, operand in parts]
    scale = np.maximum(np.max(products, axis=0), _SMALLEST_SCALE)
    for _ in range(2):
        integers = [_integers(weights, operand, scale) for weights, operand in parts]
        sums = sum(
            np.abs(item).sum(axis=1) * operand.largest for item, (_, operand) in zip(integers, parts, strict=True)
        )
        reach = (sums + np.abs(np.rint(bias / scale))) * factor
        scale = scale * np.maximum(1.0, reach / _LARGEST_SUM * 1.001)
    return Encoded(tuple(item.astype(np.int16) for item in integers), np.rint(bias / scale).astype(np.int32), scale)


def _integers(weights: Weights, operand: Operand, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    own = operand.scale * weights.scale.astype(np.float64)
    return np.rint(weights.integers * (own / scale)[:, np.newaxis])


def sigmoid_table(scale: float) -> NDArray[np.uint8]:
    """The logistic function of int8 multiples of ``scale``."""
    return _table(lambda values: SIGMOID_LEVELS / (1 + np.exp(-values)), scale)


def tanh_table(scale: float) -> NDArray[np.uint8]:
    """The hyperbolic tangent of int8 multiples of ``scale``."""
    return _table(lambda values: TANH_LEVELS * np.tanh(values), scale)


def fine_sigmoid_tables(scale: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """High and low parts of the logistic function of int8 multiples of ``scale``.

    Gates that decide what a cell remembers are close to 1, and what they are short of 1 counts once in every step:
    steps of 1/255 would be far too coarse.
    """
    total = np.rint(FINE_LEVELS / (1 + np.exp(-_inputs() * scale)))
    high = np.rint(total / HIGH_FACTOR)
    return byte_table(high.astype(np.int32)), byte_table((total - HIGH_FACTOR * high).astype(np.int32))


def half_tanh_tables(scale: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Magnitudes of the hyperbolic tangent of positive and of negative multiples of ``scale``.

    The positive half's inputs are 128 less than the multiple, the negative half's 127 more; both saturate at 0.
    """
    positive, negative = (_inputs() + 128) * scale, (_inputs() - 127) * scale
    tables = (np.rint(HALF_LEVELS * np.tanh(np.abs(values))) for values in (positive, negative))
    return tuple(byte_table(table.astype(np.int32)) for table in tables)


def _inputs() -> NDArray[np.float64]:
    """What the bytes from 0 to 255 are as int8."""
    return np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)


def _table(function, scale: float) -> NDArray[np.uint8]:
    return byte_table(np.rint(function(_inputs() * scale)).astype(np.int32))
