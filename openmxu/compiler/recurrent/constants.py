"""What a recurrent cell has in memory from the beginning: weight tiles and parameter sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.memory import parameter_bytes
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.layout import Layout, products, tiles

__all__ = ["CLEAR", "COPY", "cell_parameters", "set_numbers", "weight_tiles"]

CLEAR, COPY = 0, 1
"""Parameter sets that make 0 of anything, and leave everything as it is."""

_COMMON = 2


def set_numbers(operation: Recurrent) -> dict[int, tuple[int, int]]:
    """For each step, by its ``id``, its first parameter set, and how far behind it that of the next output tile is.

    There is only one where a step is the same for all units. Those of one tile lie next to each other, for they are
    loaded together.
    """
    uniform = [step for step in operation.steps if step.is_uniform]
    others = [step for step in operation.steps if not step.is_uniform]
    numbers = {id(step): (_COMMON + index, 0) for index, step in enumerate(uniform)}
    first = _COMMON + len(uniform)
    return numbers | {id(step): (first + index, len(others)) for index, step in enumerate(others)}


def cell_parameters(operation: Recurrent, size: int) -> NDArray[np.uint8]:
    """All parameter sets."""
    count = tiles(operation, size)
    sets: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
    none, one = np.zeros(size, np.int32), np.ones(size, np.float32)
    sets += [(none, 0 * one), (none, one)]
    for step in operation.steps:
        if step.is_uniform:
            sets.append((none + step.bias, one * step.result.scale))
    for tile in range(count):
        for step in operation.steps:
            if not step.is_uniform:
                sets.append(
                    tuple(_columns(array, operation.units, tile, size) for array in (step.bias, step.result.scale))
                )
    biases, scales = (np.concatenate(arrays) for arrays in zip(*sets, strict=True))
    return parameter_bytes(biases, scales, size)


def _columns(array: NDArray, units: int, tile: int, size: int) -> NDArray:
    """One tile's values of an array, 0 behind the last unit."""
    columns = np.zeros(size, array.dtype)
    values = np.broadcast_to(array, units)[tile * size : (tile + 1) * size]
    columns[: values.size] = values
    return columns


def weight_tiles(operation: Recurrent, layout: Layout) -> Iterator[NDArray[np.uint8]]:
    """The tiles of one step in the order of use, (S, S) bytes each; row k holds the weights of input k."""
    size = layout.size
    for phase, blocks in enumerate(layout.blocks):
        for block in blocks:
            for early in (True, False):
                for item in products(operation, phase, block, size, early):
                    weights = operation.phases[phase].sums[item.sum].weights[item.value]
                    rows = slice(item.tile * size, (item.tile + 1) * size)
                    part = weights[rows, item.plane * size : (item.plane + 1) * size].T
                    tile = np.zeros((size, size), np.uint8)
                    tile[: part.shape[0], : part.shape[1]] = (part & 0xFF).astype(np.uint8)
                    yield tile
