"""Scales of a sum with which the device computes what ONNX Runtime computes.

The device adds fixed-point numbers, ONNX Runtime adds float32. Where the exact sum lies next to a tie, the two may
round differently. A pair of scales that are a few units in the last place off moves such sums to the right side.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled

__all__ = ["QuantizedSum", "sum_scales"]

_NEAR = 2.0**-10
"""How far from a tie float32 and fixed-point numbers can still round to the same side: much less than this."""

_OFFSETS = sorted(itertools.product(range(-8, 9), repeat=2), key=lambda pair: abs(pair[0]) + abs(pair[1]))
"""Units in the last place to add to the two scales, the smallest changes first."""


@dataclass(frozen=True)
class QuantizedSum:
    """A sum of two quantized tensors, requantized.

    Attributes
    ----------
    scales, zero_points, signed
        Of the two sources, and whether they are int8 rather than uint8.
    scale, zero_point
        Of the result.
    limits
        Smallest and largest result.
    is_fused
        ONNX Runtime's optimizer makes it one QLinearAdd.
    """

    scales: tuple[np.float32, np.float32]
    zero_points: tuple[int, int]
    signed: tuple[bool, bool]
    scale: np.float32
    zero_point: int
    limits: tuple[int, int]
    is_fused: bool

    def factors(self) -> tuple[np.float32, np.float32]:
        """The scales of the sources ÷ that of the result."""
        first, second = (np.float32(scale / self.scale) for scale in self.scales)
        return first, second

    def near_ties(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The pairs of bytes whose sums lie next to a tie."""
        first, second = (np.arange(-128, 128) if signed else np.arange(256) for signed in self.signed)
        left, right = (
            (values - zero_point) * np.float64(factor)
            for values, zero_point, factor in zip((first, second), self.zero_points, self.factors(), strict=True)
        )
        sums = left[:, np.newaxis] + right
        rows, columns = np.nonzero(np.abs(sums - np.floor(sums) - 0.5) < _NEAR)
        return first[rows].astype(np.int32), second[columns].astype(np.int32)

    def as_written(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        """DequantizeLinear, Add and QuantizeLinear in float32."""
        real = [
            (values - np.int32(zero_point)).astype(np.float32) * scale
            for values, zero_point, scale in zip((first, second), self.zero_points, self.scales, strict=True)
        ]
        return self._limited(np.rint((real[0] + real[1]) / self.scale) + np.float32(self.zero_point))

    def fused(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        """QLinearAdd on x86-64: float32, with products and sums that are rounded once."""
        left, right = self.factors()
        offset = _multiply_add(self.zero_points[0], left, np.float32(right * np.float32(self.zero_points[1])))
        offset = np.float32(self.zero_point) - offset
        return self._limited(np.rint(_multiply_add(first, left, _multiply_add(second, right, offset))))

    def _limited(self, values: NDArray[np.float32]) -> NDArray[np.int32]:
        return np.clip(values, *self.limits).astype(np.int32)


def sum_scales(item: QuantizedSum) -> tuple[np.float32, np.float32]:
    """Factors of the two sources for :func:`~openmxu.arch.numerics.add_scaled`.

    With them the fewest pairs of bytes have a sum that ONNX Runtime computes with neither of its settings, and then the
    fewest one that it does not compute by default.
    """
    factors = item.factors()
    pair = item.near_ties()
    if not all(np.isfinite(factor) and factor > 0 for factor in factors) or not pair[0].size:
        return factors
    plain = item.as_written(*pair)
    usual = item.fused(*pair) if item.is_fused else plain
    operands = [values - np.int32(zero_point) for values, zero_point in zip(pair, item.zero_points, strict=True)]
    best, fewest = factors, (pair[0].size + 1, 0)
    for offsets in _OFFSETS:
        first, second = (_moved(factor, steps) for factor, steps in zip(factors, offsets, strict=True))
        ours = add_scaled(
            operands[0], np.asarray(first), operands[1], np.asarray(second), item.zero_point, *item.limits
        )
        unusual = ours != usual
        wrong = int((unusual & (ours != plain)).sum()), int(unusual.sum())
        if wrong < fewest:
            best, fewest = (first, second), wrong
        if wrong == (0, 0):
            break
    return best


def _multiply_add(
    values: NDArray[np.int32] | int, factor: np.float32, addend: NDArray[np.float32] | np.float32
) -> NDArray[np.float32]:
    """A product and a sum, rounded to float32 once."""
    return np.asarray(np.float64(factor) * values + np.asarray(addend, np.float64), np.float32)


def _moved(factor: np.float32, steps: int) -> np.float32:
    """The float32 number ``steps`` units in the last place above."""
    return np.float32((np.asarray(factor, np.float32).view(np.int32) + np.int32(steps)).view(np.float32))
