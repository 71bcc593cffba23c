"""Random sums and scales for float32 arithmetic, including extreme and special values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_scales", "random_totals"]

_TOTALS = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1, 2**24 + 3, 2**25 + 2, 3 * 2**23], np.int32)
_SCALES = np.array(
    [0.0, -0.0, 1e-45, -1e-40, np.inf, -np.inf, np.nan, 3.4028235e38, 1.17549435e-38, 1.0, -1.0, 0.5, 1.5, 2.0**-24],
    np.float32,
)


def random_totals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.int32]:
    """Arbitrary int32 numbers, small ones, and those that float32 rounds."""
    anything = rng.integers(-(2**31), 2**31, shape, np.int64).astype(np.int32)
    small = rng.integers(-(2**18), 2**18, shape, np.int32)
    return np.choose(rng.integers(0, 3, shape), [anything, small, rng.choice(_TOTALS, shape)]).astype(np.int32)


def random_scales(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.float32]:
    """Scales that map sums to the range of the output, powers of two that cause ties, special values, and any bits."""
    usual = (10.0 ** rng.uniform(-8, 1, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
    ties = np.exp2(-rng.integers(0, 50, shape)).astype(np.float32)
    anything = rng.integers(0, 2**32, shape, np.uint32).view(np.float32)
    kind = rng.choice(4, shape, p=[0.4, 0.3, 0.1, 0.2])
    # Selected as integers, because arithmetic may change the bits of a NaN.
    choices = [values.view(np.uint32) for values in (usual, ties, rng.choice(_SCALES, shape), anything)]
    return np.choose(kind, choices).astype(np.uint32).view(np.float32)
