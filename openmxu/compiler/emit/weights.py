"""Weight tiles as they lie in weight memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ByteFormat", "EncodedWeights", "byte_parts", "encode_weights"]


@dataclass(frozen=True)
class ByteFormat:
    """How a byte becomes an operand: its sign and the zero point that is subtracted."""

    signed: bool
    zero_point: int


@dataclass(frozen=True)
class EncodedWeights:
    """Weights as bytes, padded to whole tiles.

    Attributes
    ----------
    format
        How the bytes are read.
    parts : uint8 array, (parts, planes * S, tiles * S)
        Matrices that add up to the weights once their zero point is subtracted.
    size
        S.
    """

    format: ByteFormat
    parts: NDArray[np.uint8]
    size: int

    @property
    def planes(self) -> int:
        """Tiles in the direction of the inputs."""
        return self.parts.shape[1] // self.size

    @property
    def tiles(self) -> int:
        """Tiles in the direction of the outputs."""
        return self.parts.shape[2] // self.size

    def tile(self, part: int, plane: int, tile: int) -> NDArray[np.uint8]:
        """The (S, S) bytes of one tile; row k holds the weights of input k."""
        size = self.size
        return self.parts[part, plane * size : (plane + 1) * size, tile * size : (tile + 1) * size]


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


def encode_weights(weights: NDArray[np.int16], size: int) -> EncodedWeights:
    """Find bytes for a matrix of weights from -255 to 255, and pad with bytes that stand for 0.

    Padding rows meet unused lanes of the unified buffer, which hold anything: only zero weights keep them out.
    """
    format, parts = byte_parts(weights)
    inputs, outputs = weights.shape
    shape = (len(parts), -(-inputs // size) * size, -(-outputs // size) * size)
    encoded = np.full(shape, format.zero_point & 0xFF, np.uint8)
    for index, part in enumerate(parts):
        encoded[index, :inputs, :outputs] = ((part + format.zero_point) & 0xFF).astype(np.uint8)
    return EncodedWeights(format, encoded, size)
