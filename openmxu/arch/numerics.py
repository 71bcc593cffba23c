"""The arithmetic of the activation unit, bit for bit, in numpy.

The requantizer computes what ONNX Runtime's CPU provider computes for quantized linear operators:
``saturate(round_half_even(float32(acc) * scale) + zero_point)`` in float32. Hardware, interpreter and compiler share
this definition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FRACTION_BITS",
    "REQUANTIZED_LIMIT",
    "add_scaled",
    "elements",
    "fixed_point",
    "operand",
    "pool",
    "real_operand",
    "requantize",
]

REQUANTIZED_LIMIT = 1 << 18
"""Rounded products saturate to ± this value before the zero point is added. Zero point and clamp limits lie within
±2**17, so the saturation never shows in a clamped result."""

FRACTION_BITS = 24
"""Fraction bits of the sum of two scaled operands."""

SMALLEST_FIXED_POINT = 2.0**-14
"""Scaled operands below this count as 0 when they are added."""


def operand(values: NDArray[np.uint8], zero_point: int, signed: bool) -> NDArray[np.int32]:
    """Bytes as operands of the array: int8 if ``signed``, else uint8, minus ``zero_point``; from -255 to 255."""
    typed = values.view(np.int8) if signed else values
    return typed.astype(np.int32) - np.int32(zero_point)


def real_operand(values: NDArray[np.uint8], zero_point: int, signed: bool) -> NDArray[np.float32]:
    """The integers of :func:`operand` as float32, which has all of them; C-contiguous."""
    typed = values.view(np.int8) if signed else values
    real = typed.astype(np.float32, order="C")
    if zero_point:
        real -= np.float32(zero_point)
    return real


def elements(rows: NDArray[np.uint8], zero_point: int, signed: bool, wide: bool) -> NDArray[np.int32]:
    """Unified buffer rows as the activation unit reads them.

    Parameters
    ----------
    rows
        uint8, (n, S); if ``wide``, (2·n, S): each element row is two rows, low bytes first.
    zero_point, signed
        As in the SOURCE_FORMAT and OPERAND_FORMAT registers.

    Returns
    -------
    int32, (n, S): elements minus ``zero_point``, from -65535 to 65535.
    """
    if not wide:
        return operand(rows, zero_point, signed)
    words = rows[0::2].astype(np.uint16) | rows[1::2].astype(np.uint16) << 8
    typed = words.view(np.int16) if signed else words
    return typed.astype(np.int32) - np.int32(zero_point)


def pool(windows: NDArray[np.int32], inside: NDArray[np.bool_], maximum: bool) -> NDArray[np.int32]:
    """Reduce windows of rows to one row each.

    Parameters
    ----------
    windows
        int32, (n, positions, S); values at positions outside the plane are ignored.
    inside
        bool, (n, positions): true for positions inside the plane, which count.
    maximum
        Compute the maximum (-2**31 if no position counts) rather than the sum (which wraps to 32 bits).

    Returns
    -------
    int32, (n, S).
    """
    counts = inside[:, :, np.newaxis]
    if maximum:
        return np.where(counts, windows, np.int32(-(1 << 31))).max(axis=1)
    return np.where(counts, windows, np.int32(0)).sum(axis=1, dtype=np.int32)


def _scaled(values: NDArray[np.int32], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """``float32(values) * scale`` in float32. A subnormal scale counts as zero, NaN as infinity of its sign."""
    scale = np.asarray(scale, np.float32)
    bits = scale.view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    infinity = np.where(bits >> 31 != 0, np.float32(-np.inf), np.float32(np.inf)).astype(np.float32)
    factor = np.where(exponent == 0, np.float32(0), np.where(exponent == 255, infinity, scale))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        product = np.asarray(values, np.int32).astype(np.float32) * factor.astype(np.float32)
    return np.where(np.isnan(product), np.float32(0), product)


def fixed_point(values: NDArray[np.int32], scale: NDArray[np.float32]) -> NDArray[np.int64]:
    """``float32(values) * scale`` with ``FRACTION_BITS`` fraction bits, truncated towards zero.

    Saturates to ±``REQUANTIZED_LIMIT``; magnitudes below ``SMALLEST_FIXED_POINT`` become 0.
    """
    product = _scaled(values, scale).astype(np.float64)
    magnitude = np.minimum(np.abs(product), REQUANTIZED_LIMIT)
    magnitude = np.where(magnitude < SMALLEST_FIXED_POINT, 0.0, magnitude)
    fixed = np.floor(np.ldexp(magnitude, FRACTION_BITS)).astype(np.int64)
    return np.where(product < 0, -fixed, fixed)


def add_scaled(
    first: NDArray[np.int32],
    first_scale: NDArray[np.float32],
    second: NDArray[np.int32],
    second_scale: NDArray[np.float32],
    zero_point: int,
    minimum: int,
    maximum: int,
) -> NDArray[np.int32]:
    """The sum of two scaled operands, rounded half to even; see :func:`requantize` for zero point and limits.

    Both products become fixed-point numbers (:func:`fixed_point`) before they are added. ONNX Runtime's QLinearAdd adds
    in float32 instead; the results differ by at most 1, where the exact sum lies next to a tie.
    """
    total = fixed_point(first, first_scale) + fixed_point(second, second_scale)
    # Exact in float64: the sum has at most 45 bits.
    rounded = np.rint(np.ldexp(total.astype(np.float64), -FRACTION_BITS)).astype(np.int32)
    return np.minimum(np.maximum(rounded + np.int32(zero_point), np.int32(minimum)), np.int32(maximum))


def requantize(
    accumulators: NDArray[np.int32],
    scale: NDArray[np.float32],
    zero_point: int,
    minimum: int,
    maximum: int,
) -> NDArray[np.int32]:
    """Scale int32 sums to the integers of the next layer.

    Parameters
    ----------
    accumulators
        int32 sums, bias included, any shape that broadcasts with ``scale``.
    scale
        float32 factors. A subnormal scale counts as zero; infinity and NaN count as infinity of their sign.
    zero_point, minimum, maximum
        Added after rounding; limits of the result. All from -2**17 to 2**17 - 1.

    Returns
    -------
    int32 array: ``min(max(round_half_even(float32(accumulators) * scale) + zero_point, minimum), maximum)``.
    """
    product = _scaled(accumulators, scale)
    rounded = np.clip(np.rint(product), -REQUANTIZED_LIMIT, REQUANTIZED_LIMIT).astype(np.int32)
    return np.minimum(np.maximum(rounded + np.int32(zero_point), np.int32(minimum)), np.int32(maximum))
