"""Weight tiles on their way to the array."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import real_operand
from openmxu.sim.interpreter.memories import Memories, Step

__all__ = ["Tile", "TileQueue"]

Tile = Callable[[], NDArray[np.float32]]
"""Fetches the operands of a tile, float32, (S, S): integers from -255 to 255."""


class TileQueue:
    """The tiles that are queued where a translation has come to. A program has no branches, so it is known before the
    program runs which tile each product takes."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._queued: deque[Tile] = deque()

    def read(self, values: Mapping[str, int], format: Mapping[str, int]) -> None:
        """Queue the tiles of a Read_Weights. They are fetched when the array takes them: nothing writes to weight
        memory."""
        for number in range(values["tiles"]):
            signed = number % 2 == 1 if format["wide"] else bool(format["signed"])
            first = values["weights"] + number * self._memories.tile.size
            self._queued.append(partial(_read, self._memories, first, format["zero_point"], signed))

    def load(self, values: Mapping[str, int], format: Mapping[str, int]) -> Step:
        """Queue the tile of a Load_Weights; the step copies its bytes."""
        memories, first = self._memories, values["unified_buffer"]
        rows = memories.unified_buffer[first : first + len(memories.tile)]
        bytes_ = rows.T if values["transposed"] else rows
        self._queued.append(partial(_take_loaded, memories, format["zero_point"], bool(format["signed"])))
        return lambda: memories.loaded.append(bytes_.copy())

    def take(self) -> Tile:
        """The next tile."""
        return self._queued.popleft()

    def clear(self) -> None:
        """Forget all tiles."""
        self._queued.clear()


def _read(memories: Memories, first: int, zero_point: int, signed: bool) -> NDArray[np.float32]:
    """The tile in weight memory that begins at a byte."""
    shape = memories.tile.shape
    return real_operand(memories.weights[first : first + shape[0] * shape[1]].reshape(shape), zero_point, signed)


def _take_loaded(memories: Memories, zero_point: int, signed: bool) -> NDArray[np.float32]:
    """The next tile of those that were loaded from the unified buffer."""
    return real_operand(memories.loaded.popleft(), zero_point, signed)
