"""The arithmetic of the activation unit, bit for bit, in numpy.

The requantizer computes what ONNX Runtime's CPU provider computes for quantized linear operators:
``saturate(round_half_even(float32(acc) * scale) + zero_point)`` in float32. Hardware, interpreter and compiler share
this definition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["REQUANTIZED_LIMIT", "operand", "requantize"]

REQUANTIZED_LIMIT = 1 << 18
"""Rounded products saturate to ±this before the zero point is added. Zero point and clamp limits lie within ±2**17, so
the saturation never shows in a clamped result."""


def operand(values: NDArray[np.uint8], zero_point: int, signed: bool) -> NDArray[np.int32]:
    """Bytes as the array multiplies them: interpreted by ``signed``, minus ``zero_point``; from -255 to 255."""
    typed = values.view(np.int8) if signed else values
    return typed.astype(np.int32) - np.int32(zero_point)


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
    scale = np.asarray(scale, np.float32)
    bits = scale.view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    infinity = np.where(bits >> 31 != 0, np.float32(-np.inf), np.float32(np.inf)).astype(np.float32)
    factor = np.where(exponent == 0, np.float32(0), np.where(exponent == 255, infinity, scale))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        product = np.asarray(accumulators, np.int32).astype(np.float32) * factor.astype(np.float32)
    product = np.where(np.isnan(product), np.float32(0), product)
    rounded = np.clip(np.rint(product), -REQUANTIZED_LIMIT, REQUANTIZED_LIMIT).astype(np.int32)
    return np.minimum(np.maximum(rounded + np.int32(zero_point), np.int32(minimum)), np.int32(maximum))
