"""Steps of the array: MatrixMultiply and Convolve.

A MatrixMultiply is computed as a Convolve without padding of a plane that is one position wide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import elements, real_operand
from openmxu.sim.interpreter.memories import Memories, Step
from openmxu.sim.interpreter.tiles import Tile

__all__ = ["Walk", "convolution_walk", "matrix_walk", "multiply"]

_Pair = tuple[int, int]

_KEPT_WALKS = 256


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

    plane: _Pair
    outputs: _Pair
    start: _Pair
    step: _Pair

    @property
    def rows(self) -> int:
        """Positions of the plane."""
        return self.plane[0] * self.plane[1]

    @functools.cached_property
    def inside(self) -> tuple[slice, slice]:
        """The outputs that read the plane rather than zeros: downwards and to the right."""
        return self._inside(0), self._inside(1)

    def read(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows of the plane that the outputs inside read, a view of shape (height, width, S)."""
        read = rows.reshape(*self.plane, -1)[self._read]
        if 0 in self.step:  # several outputs read the same
            shape = [outputs.stop - outputs.start for outputs in self.inside]
            return np.broadcast_to(read, (*shape, read.shape[2]))
        return read

    def _inside(self, axis: int) -> slice:
        start, step, count, limit = self.start[axis], self.step[axis], self.outputs[axis], self.plane[axis]
        if step == 0:
            return slice(0, count if 0 <= start < limit else 0)
        first, end = max(0, -(start // step)), max(0, -((start - limit) // step))
        return slice(min(first, count), min(max(first, end), count))

    @functools.cached_property
    def _read(self) -> tuple[slice, slice]:
        return self._positions(0), self._positions(1)

    def _positions(self, axis: int) -> slice:
        """The rows or columns of the plane that they read; one if the distance is 0."""
        inside, start, step = self.inside[axis], self.start[axis], self.step[axis]
        if inside.start == inside.stop:
            return slice(0, 0)
        return slice(start + inside.start * step, start + (inside.stop - 1) * step + 1, max(1, step))


@functools.lru_cache(_KEPT_WALKS)
def convolution_walk(plane: _Pair, outputs: _Pair, start: _Pair, step: _Pair) -> Walk:
    """That of a Convolve; the same for all tiles of a layer."""
    return Walk(plane, outputs, start, step)


@functools.lru_cache(_KEPT_WALKS)
def matrix_walk(rows: int) -> Walk:
    """That of a MatrixMultiply."""
    return Walk((rows, 1), (rows, 1), (0, 0), (1, 1))


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
    inside = outputs[walk.inside]
    product = _Product(
        memories=memories,
        inputs=_inputs(memories, values, walk, input_format),
        tiles=tuple(tiles),
        inside=inside,
        cleared=outputs if inside.size < outputs.size and not values["accumulate"] else None,
        accumulates=bool(values["accumulate"]),
        is_wide=bool(values["wide_input"] or values["wide_weights"]),
    )
    return product.step


@dataclass(frozen=True, slots=True)
class _Product:
    """What a product has found out about itself. There are thousands in a program, which slots keep small.

    Attributes
    ----------
    inputs
        Fetches the operands that the outputs inside read, of any shape (..., S).
    tiles
        Those that it takes: the low and the high bytes of the weights.
    inside
        The accumulators of the outputs that read the plane, (height, width, S).
    cleared
        Accumulators to set to 0 first, because some of the outputs read nothing else.
    accumulates
        Whether it adds.
    is_wide
        Whether any operand has 16 bits.
    """

    memories: Memories
    inputs: Callable[[], NDArray[Any]]
    tiles: tuple[Tile, ...]
    inside: NDArray[np.int32]
    cleared: NDArray[np.int32] | None
    accumulates: bool
    is_wide: bool

    def step(self) -> None:
        """The step."""
        weights = self._weights()
        inputs = self.inputs().reshape(-1, len(weights))
        # Floats are exact here, and numpy multiplies integer matrices slowly: sums of 8-bit operands are at most
        # 256 · 255 · 255 < 2**24, those of 16-bit operands less than 256 · 2**15 · 2**17 = 2**40.
        if self.is_wide:
            products = np.dot(inputs.astype(np.float64), weights.astype(np.float64)).astype(np.int64)
        else:
            products = np.dot(inputs, weights)
        # From int64 to int32 wraps, and so do additions of int32 arrays.
        inside = self.inside
        sums = products.astype(np.int32).reshape(inside.shape)
        if self.accumulates:
            np.add(inside, sums, out=inside)
            return
        if self.cleared is not None:
            self.cleared[:] = 0
        inside[:] = sums

    def _weights(self) -> NDArray[np.float32]:
        """The operands of the weights, (S, S); the last tile stays in the array."""
        memories, tiles = self.memories, self.tiles
        if not tiles:
            return memories.tile
        low = memories.tile = tiles[0]()
        if len(tiles) == 1:
            return low
        high = memories.tile = tiles[1]()
        return low + np.float32(256) * high  # of 16 bits, which float32 has


def _inputs(
    memories: Memories, values: Mapping[str, int], walk: Walk, format: Mapping[str, int]
) -> Callable[[], NDArray[Any]]:
    wide = bool(values["wide_input"])
    first = values["unified_buffer"]
    bytes_ = memories.unified_buffer[first : first + (walk.rows << wide)]
    if wide:
        return lambda: walk.read(elements(bytes_, 0, signed=True, wide=True))
    return functools.partial(real_operand, walk.read(bytes_), format["zero_point"], bool(format["signed"]))
