"""Weight tiles on their way to the array."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

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
        size = len(self._memories.tile)
        for number in range(values["tiles"]):
            signed = number % 2 == 1 if format["wide"] else bool(format["signed"])
            self._queued.append(self._in_memory(values["weights"] + number * size * size, format["zero_point"], signed))

    def load(self, values: Mapping[str, int], format: Mapping[str, int]) -> Step:
        """Queue the tile of a Load_Weights; the step copies its bytes."""
        memories, first = self._memories, values["unified_buffer"]
        rows = memories.unified_buffer[first : first + len(memories.tile)]
        bytes_ = rows.T if values["transposed"] else rows
        zero_point, signed = format["zero_point"], bool(format["signed"])
        self._queued.append(lambda: real_operand(memories.loaded.popleft(), zero_point, signed))
        return lambda: memories.loaded.append(bytes_.copy())

    def take(self) -> Tile:
        """The next tile."""
        return self._queued.popleft()

    def clear(self) -> None:
        """Forget all tiles."""
        self._queued.clear()

    def _in_memory(self, first: int, zero_point: int, signed: bool) -> Tile:
        memories, shape = self._memories, self._memories.tile.shape
        end = first + memories.tile.size
        return lambda: real_operand(memories.weights[first:end].reshape(shape), zero_point, signed)
