"""Steps of the array: MatrixMultiply and Convolve.

A MatrixMultiply is computed as a Convolve without padding of a plane that is one position wide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import elements, real_operand
from openmxu.sim.interpreter.memories import Memories, Step
from openmxu.sim.interpreter.tiles import Tile

__all__ = ["Walk", "multiply"]


@dataclass(frozen=True)
class Walk:
    """The positions of a plane that the outputs of a product read, row after row.

    Attributes
    ----------
    plane
        Height and width of the plane.
    outputs
        Height and width of the outputs.
    start, step
        The position that the first output reads, and the distance to that of its neighbours: downwards and to the
        right. Outputs read zeros where the position is outside the plane.
    """

    plane: tuple[int, int]
    outputs: tuple[int, int]
    start: tuple[int, int] = (0, 0)
    step: tuple[int, int] = (1, 1)

    @classmethod
    def of_rows(cls, rows: int) -> Walk:
        """That of a MatrixMultiply."""
        return cls((rows, 1), (rows, 1))

    def inside(self, axis: int) -> slice:
        """The outputs that read the plane rather than zeros, downwards (0) or to the right (1)."""
        start, step, count, limit = self.start[axis], self.step[axis], self.outputs[axis], self.plane[axis]
        if step == 0:
            return slice(0, count if 0 <= start < limit else 0)
        first, end = max(0, -(start // step)), max(0, -((start - limit) // step))
        return slice(min(first, count), min(max(first, end), count))

    def read(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows of the plane that the outputs inside read, a view of shape (height, width, S)."""
        plane = rows.reshape(*self.plane, -1)[self._positions(0), self._positions(1)]
        y, x = self.inside(0), self.inside(1)
        return np.broadcast_to(plane, (y.stop - y.start, x.stop - x.start, plane.shape[2]))

    def _positions(self, axis: int) -> slice:
        """The rows or columns of the plane that they read; one if the distance is 0."""
        inside, step = self.inside(axis), self.step[axis]
        if inside.start == inside.stop:
            return slice(0, 0)
        first, last = self.start[axis] + inside.start * step, self.start[axis] + (inside.stop - 1) * step
        return slice(first, last + 1, max(1, step))


def multiply(
    memories: Memories, values: Mapping[str, int], walk: Walk, input_format: Mapping[str, int], tiles: Sequence[Tile]
) -> Step:
    """A product: inputs times one tile, or two, into as many accumulator rows as there are outputs.

    Parameters
    ----------
    values
        Fields of the instruction.
    walk
        The positions that it reads.
    input_format
        Fields of INPUT_FORMAT.
    tiles
        Those that it takes from the queue: none to use the one in the array again.
    """
    size, first = memories.accumulators.shape[1], values["accumulator"]
    outputs = memories.accumulators[first : first + walk.outputs[0] * walk.outputs[1]].reshape(*walk.outputs, size)
    inside = outputs[walk.inside(0), walk.inside(1)]
    has_padding = inside.size < outputs.size
    inputs, weights = _inputs(memories, values, walk, input_format), _weights(memories, tiles)
    wide, accumulates = bool(values["wide_input"] or values["wide_weights"]), bool(values["accumulate"])

    def step() -> None:
        # Floats are exact here, and numpy multiplies integer matrices slowly: sums of 8-bit operands are at most
        # 256 · 255 · 255 < 2**24, those of 16-bit operands less than 256 · 2**15 · 2**17 = 2**40.
        left, right = inputs().reshape(-1, size), weights()
        if wide:
            products = np.dot(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
        else:
            products = np.dot(left, right)
        # From int64 to int32 wraps, and so do additions of int32 arrays.
        sums = products.astype(np.int32).reshape(inside.shape)
        if accumulates:
            np.add(inside, sums, out=inside)
            return
        if has_padding:
            outputs[:] = 0
        inside[:] = sums

    return step


def _inputs(
    memories: Memories, values: Mapping[str, int], walk: Walk, format: Mapping[str, int]
) -> Callable[[], NDArray[Any]]:
    """Fetches the operands that the outputs inside read, of any shape (..., S)."""
    wide = bool(values["wide_input"])
    first, rows = values["unified_buffer"], walk.plane[0] * walk.plane[1]
    bytes_ = memories.unified_buffer[first : first + (rows << wide)]
    if wide:
        return lambda: walk.read(elements(bytes_, 0, signed=True, wide=True))
    return partial(real_operand, walk.read(bytes_), format["zero_point"], bool(format["signed"]))


def _weights(memories: Memories, tiles: Sequence[Tile]) -> Callable[[], NDArray[np.float32]]:
    """Fetches the operands of the weights, (S, S), and leaves the last tile in the array."""
    if not tiles:
        return lambda: memories.tile

    def fetch() -> NDArray[np.float32]:
        low = memories.tile = tiles[0]()
        if len(tiles) == 1:
            return low
        high = memories.tile = tiles[1]()
        return low + np.float32(256) * high  # of 16 bits, which float32 has

    return fetch
