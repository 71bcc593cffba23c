"""Pooling over a plane, whose windows are gathered through index arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import pool

__all__ = ["pooled"]

_ELEMENTS_AT_ONCE = 1 << 22
"""Number of elements of windows that are gathered before they are reduced: limits the memory for pooling."""


def pooled(
    source: NDArray[np.int32], window: Mapping[str, int], plane: Mapping[str, int], rows: int, *, maximum: bool
) -> NDArray[np.int32]:
    """Pooling over windows of a plane.

    Parameters
    ----------
    source
        int32, (height · width of the plane, S).
    window, plane
        Fields of POOLING_WINDOW and POOLING_PLANE.
    rows
        Results.
    maximum
        Maximum rather than sum, see :func:`openmxu.arch.numerics.pool`.

    Returns
    -------
    int32, (rows, S).
    """
    # A window larger than the plane has no more positions that count than the plane.
    shape = min(window["height"], plane["height"]), min(window["width"], plane["width"])
    together = max(1, _ELEMENTS_AT_ONCE // (shape[0] * shape[1] * source.shape[1]))
    result = np.empty((rows, source.shape[1]), np.int32)
    for first in range(0, rows, together):
        results = np.arange(first, min(first + together, rows))
        positions, inside = _windows(results, shape, window, plane)
        result[results] = pool(source[positions], inside, maximum)
    return result


def _windows(
    results: NDArray[np.int64], shape: tuple[int, int], window: Mapping[str, int], plane: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of the windows of some results, (n, positions), and a mask of those that count."""
    output_y, output_x = np.divmod(results, plane["output_width"])
    y, y_inside = _span(output_y * window["stride_y"] - window["pad_top"], window["height"], plane["height"], shape[0])
    x, x_inside = _span(output_x * window["stride_x"] - window["pad_left"], window["width"], plane["width"], shape[1])
    positions = y[:, :, np.newaxis] * plane["width"] + x[:, np.newaxis, :]
    inside = y_inside[:, :, np.newaxis] & x_inside[:, np.newaxis, :]
    return positions.reshape(len(results), -1), inside.reshape(len(results), -1)


def _span(first: NDArray[np.int64], length: int, limit: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """``count`` coordinates from the point where each window enters the plane, and a mask of those in both."""
    coordinates = np.maximum(first, 0)[:, np.newaxis] + np.arange(count)
    inside = coordinates < np.minimum(first + length, limit)[:, np.newaxis]
    return np.where(inside, coordinates, 0), inside
