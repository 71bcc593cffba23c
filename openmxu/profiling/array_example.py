"""A product of small random matrices, recorded from the array's RTL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openmxu.arch.errors import OpenmxuError

if TYPE_CHECKING:
    from openmxu.sim.array_recording import ArrayRecording

__all__ = ["MismatchError", "example_recording"]

_LARGEST = 9
"""Operands are from -9 to 9, which are easy to follow."""


class MismatchError(OpenmxuError):
    """Sums of the RTL differ from numpy's; the message says how many."""


def example_recording(m: int, k: int, n: int, size: int, seed: int = 0) -> ArrayRecording:
    """Record M × K by K × N on an array of ``size`` × ``size``.

    Raises
    ------
    ValueError
        The array or the product is too large to be shown.
    MismatchError
        The product is not numpy's.
    """
    # Imported here because nothing else of a profile needs the HDL.
    from openmxu.sim.array_recording import record_product

    rng = np.random.default_rng(seed)
    left = rng.integers(-_LARGEST, _LARGEST + 1, (m, k))
    right = rng.integers(-_LARGEST, _LARGEST + 1, (k, n))
    recording = record_product(left, right, size)
    mismatches = int(np.count_nonzero(recording.product != left @ right))
    if mismatches:
        raise MismatchError(f"{mismatches} of {m * n} sums of the RTL differ from numpy's")
    return recording
