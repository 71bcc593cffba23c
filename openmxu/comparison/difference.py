"""How far the outputs of two computations of a model are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Difference"]

_LEAST = 1e-30
"""Stands for the largest number of an output that is all zeros."""


@dataclass(frozen=True)
class Difference:
    """Outputs compared number by number.

    Attributes
    ----------
    outputs, differing
        All numbers of all outputs, and those that differ.
    largest, relative
        The largest difference, and the largest one as a share of the largest number of its output.
    """

    outputs: int
    differing: int
    largest: float
    relative: float

    @classmethod
    def of(cls, ours: Sequence[NDArray[Any]], wanted: Sequence[NDArray[Any]]) -> Difference:
        """Compare arrays one by one.

        Raises
        ------
        ValueError
            Types or shapes are not the same.
        """
        differing, largest, relative = 0, 0.0, 0.0
        for array, other in zip(ours, wanted, strict=True):
            if array.shape != other.shape or array.dtype != other.dtype:
                raise ValueError(f"the output is {array.dtype} {array.shape}, not {other.dtype} {other.shape}")
            differing += int((array != other).sum())
            reals = other.astype(np.float64)
            distance = float(np.abs(array.astype(np.float64) - reals).max(initial=0))
            largest = max(largest, distance)
            relative = max(relative, distance / max(float(np.abs(reals).max(initial=0)), _LEAST))
        return cls(sum(array.size for array in wanted), differing, largest, relative)
