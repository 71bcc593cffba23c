"""The memories that a program works on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLE_BYTES, TABLES

__all__ = ["Memories", "Step"]

Step = Callable[[], None]
"""The effect of an instruction on the memories. It holds views of them, so that it only moves and computes numbers."""


class Memories:
    """All memories; those of the core start as zeros and are the same arrays as long as the core exists.

    Attributes
    ----------
    unified_buffer : uint8 array, (unified_buffer_rows, S)
    accumulators : int32 array, (accumulator_rows, S)
    biases : int32 array, (parameter_sets, S)
    scales : float32 array, (parameter_sets, S)
    tables : uint8 array, (8, 256)
    host, weights : uint8 vectors
        Host and weight memory of the program that runs.
    loaded : uint8 arrays, (S, S)
        The bytes of tiles that Load_Weights has taken from the unified buffer, and the array has not taken yet.
    tile : float32 array, (S, S)
        The operands in the array.
    """

    def __init__(self, config: Config) -> None:
        self.unified_buffer = np.zeros((config.unified_buffer_rows, config.size), np.uint8)
        self.accumulators = np.zeros((config.accumulator_rows, config.size), np.int32)
        self.biases = np.zeros((config.parameter_sets, config.size), np.int32)
        self.scales = np.zeros((config.parameter_sets, config.size), np.float32)
        self.tables = np.zeros((TABLES, TABLE_BYTES), np.uint8)
        self.host = self.weights = np.zeros(0, np.uint8)
        self.loaded: deque[NDArray[np.uint8]] = deque()
        self.tile = np.zeros((config.size, config.size), np.float32)

    def clear(self) -> None:
        """Set the memories of the core to zeros."""
        for memory in (self.unified_buffer, self.accumulators, self.biases, self.scales, self.tables):
            memory[...] = 0
