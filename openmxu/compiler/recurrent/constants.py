"""What a recurrent cell has in memory from the beginning: weight tiles and parameter sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.emit.memory import parameter_bytes
from openmxu.compiler.recurrent.cell import Recurrent, Step, Sum
from openmxu.compiler.recurrent.layout import Layout, Product, products, tiles

__all__ = ["CLEAR", "COPY", "cell_parameters", "set_numbers", "weight_tiles"]

CLEAR, COPY = 0, 1
"""Parameter sets that make 0 of anything, and leave everything as it is."""

_COMMON = 2


def set_numbers(operation: Recurrent) -> dict[str, tuple[int, int]]:
    """For each step, by its target, its first parameter set, and how far behind it that of the next output tile is.

    There is only one where a step is the same for all units. Those of one tile lie next to each other, for they are
    loaded together. Steps with the same bias and scale share theirs.
    """
    uniform, others = _different(operation, True), _different(operation, False)
    first = _COMMON + len(uniform)
    numbers = {}
    for step in operation.steps:
        if step.is_uniform:
            numbers[step.target] = _COMMON + _index(uniform, step), 0
        else:
            numbers[step.target] = first + _index(others, step), len(others)
    return numbers


def _different(operation: Recurrent, is_uniform: bool) -> list[Step]:
    """Steps that have parameter sets of their own."""
    found: list[Step] = []
    for step in operation.steps:
        if step.is_uniform == is_uniform and _index(found, step) == len(found):
            found.append(step)
    return found


def _index(steps: list[Step], step: Step) -> int:
    """Number of the one with the same parameters; the number of steps if there is none."""

    def is_alike(other: Step) -> bool:
        return np.array_equal(other.bias, step.bias) and np.array_equal(other.result.scale, step.result.scale)

    return next((number for number, item in enumerate(steps) if is_alike(item)), len(steps))


def cell_parameters(operation: Recurrent, size: int) -> NDArray[np.uint8]:
    """All parameter sets."""
    count = tiles(operation, size)
    sets: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
    none, one = np.zeros(size, np.int32), np.ones(size, np.float32)
    sets += [(none, 0 * one), (none, one)]
    sets += [(none + step.bias, one * step.result.scale) for step in _different(operation, True)]
    for tile in range(count):
        for step in _different(operation, False):
            sets.append(tuple(_columns(array, operation.units, tile, size) for array in (step.bias, step.result.scale)))
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
            for item in itertools.chain(*products(operation, phase, block, size)):
                if not item.reuses:
                    yield _tile(operation.phases[phase].sums[item.sum], item, size)


def _tile(item: Sum, product: Product, size: int) -> NDArray[np.uint8]:
    if product.factor is not None:
        return np.diag(np.full(size, product.factor & 0xFF, np.uint8))
    rows, columns = (slice(number * size, (number + 1) * size) for number in (product.tile, product.plane))
    part = item.weights[product.value][rows, columns].T
    tile = np.zeros((size, size), np.uint8)
    tile[: part.shape[0], : part.shape[1]] = (part & 0xFF).astype(np.uint8)
    return tile
