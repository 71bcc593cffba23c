"""The arithmetic of the instruction set again, in Python integers and loops over single elements, for simplicity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Source = Callable[[int, int], int]
"""The element at (row, column)."""


def wrap(value: int) -> int:
    """The lowest 32 bits of a number as a signed number."""
    return (value + 2**31) % 2**32 - 2**31


def byte(value: int, *, signed: bool, zero_point: int) -> int:
    return (value - 256 if signed and value > 127 else int(value)) - zero_point


def element(rows: np.ndarray, number: int, column: int, *, signed: bool, wide: bool, zero_point: int) -> int:
    """Element number ``number`` of a column; the first element begins in the first of ``rows``."""
    if not wide:
        return byte(int(rows[number, column]), signed=signed, zero_point=zero_point)
    value = int(rows[2 * number, column]) + 256 * int(rows[2 * number + 1, column])
    return (value - 65536 if signed and value > 32767 else value) - zero_point


def product(inputs: Sequence[int], weights: np.ndarray, column: int) -> int:
    """One row times one column of a tile."""
    return sum(x * int(weights[k, column]) for k, x in enumerate(inputs))


@dataclass
class Pool:
    """Pooling of a plane whose position p is row p of the source."""

    height: int
    width: int
    window: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    output_width: int
    maximum: bool

    def __call__(self, source: Source, result: int, column: int) -> int:
        output_y, output_x = result // self.output_width, result % self.output_width
        values = []
        for window_y in range(self.window[0]):
            for window_x in range(self.window[1]):
                y = output_y * self.stride[0] - self.pad[0] + window_y
                x = output_x * self.stride[1] - self.pad[1] + window_x
                if 0 <= y < self.height and 0 <= x < self.width:
                    values.append(source(y * self.width + x, column))
        if self.maximum:
            return max(values, default=-(2**31))
        return wrap(sum(values))


def limited(exact: Fraction, zero_point: int, minimum: int, maximum: int) -> int:
    """Round half to even, as Python rounds fractions; then add the zero point and clamp."""
    return min(max(round(exact) + zero_point, minimum), maximum)


def read_result(rows: np.ndarray, result: int, column: int, count: int) -> bytes:
    """The bytes of a result of ``count`` bytes, lowest first."""
    return bytes(int(rows[count * result + part, column]) for part in range(count))
