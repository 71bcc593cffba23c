"""Weight tiles as they lie in weight memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ByteFormat", "byte_parts"]


@dataclass(frozen=True)
class ByteFormat:
    """How a byte becomes an operand: its sign and the zero point that is subtracted."""

    signed: bool
    zero_point: int


def _byte_format(low: int, high: int) -> ByteFormat | None:
    """The format that holds every integer from ``low`` to ``high``, if there is one."""
    if low >= -128 and high <= 127:
        return ByteFormat(True, 0)
    if high - low <= 255:
        return ByteFormat(False, -low)
    return None


def byte_parts(weights: NDArray[np.int16]) -> tuple[ByteFormat, list[NDArray[np.int16]]]:
    """Arrays that add up to weights from -255 to 255, and a format of bytes that holds every value of them and 0.

    There is more than one only where channels have zero points so far apart that one byte does not hold every weight
    minus its channel's zero point.
    """
    format = _byte_format(min(0, int(weights.min())), max(0, int(weights.max())))
    if format is not None:
        return format, [weights]
    parts = []
    while weights.any():
        parts.append(np.clip(weights, -128, 127))
        weights = weights - parts[-1]
    return ByteFormat(True, 0), parts
