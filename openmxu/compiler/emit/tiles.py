"""Weight tiles of convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.emit.weights import ByteFormat, byte_parts
from openmxu.compiler.ir.operations import Convolution

__all__ = ["KernelTiles", "Step", "kernel_tiles"]


@dataclass(frozen=True)
class Step:
    """One weight tile: its output tile, the input plane that it multiplies, and the kernel position.

    ``part`` counts the matrices of bytes that add up to the weights.
    """

    tile: int
    plane: int
    part: int
    ky: int
    kx: int


@dataclass(frozen=True)
class KernelTiles:
    """The weights of a convolution as bytes in tiles.

    Groups are blocks on the diagonal of one large matrix of weights: a tile has weights of zero between inputs and
    outputs of different groups, and where a whole tile would be zero there is none.

    Attributes
    ----------
    format
        How the bytes are read.
    parts : int16 arrays of the shape of the weights
        As in :func:`~openmxu.compiler.emit.weights.byte_parts`.
    together, following
        Output tiles of the first group and of each other one: they are summed up side by side, plane by plane.
    apart
        The tiles lie in memory once more, for output tiles that are summed up one by one.
    """

    operation: Convolution
    format: ByteFormat
    parts: tuple[NDArray[np.int16], ...]
    size: int
    together: int = 1
    following: int = 1
    apart: bool = False

    @property
    def tiles(self) -> int:
        """Output tiles."""
        return -(-self.operation.outputs // self.size)

    @cached_property
    def groups(self) -> list[range]:
        """Output tiles that are summed up side by side."""
        starts = range(self.together, self.tiles, self.following)
        return [range(self.together), *(range(start, min(start + self.following, self.tiles)) for start in starts)]

    def steps(self, group: range) -> Iterator[Step]:
        """The weight tiles of a group in the order of use, plane by plane."""
        _, _, height, width = self.operation.weights.shape
        for plane in self._planes(group[0]):
            for tile in group:
                for part in range(len(self.parts)):
                    for ky in range(height):
                        for kx in range(width):
                            yield Step(tile, plane, part, ky, kx)

    def limits(self, config: Config) -> bool:
        """Whether summing up an output tile takes much longer than activating it."""
        return self.count() >= 2 * config.column_groups * self.tiles

    def numbers(self, group: range) -> range:
        """The numbers of the weight tiles of a group, in the order of ``steps``."""
        first = self._firsts[group]
        return range(first, first + self._count(group))

    @cached_property
    def _firsts(self) -> dict[range, int]:
        """The first number of each group."""
        counts = itertools.accumulate((self._count(group) for group in self._stored), initial=0)
        firsts: dict[range, int] = {}
        for group, first in zip(self._stored, counts, strict=False):
            firsts.setdefault(group, first)  # a group of one output tile may be there twice
        return firsts

    @property
    def _stored(self) -> list[range]:
        """The groups in the order in which their tiles lie in memory."""
        return self.groups + (self.singles if self.apart else [])

    def _count(self, group: range) -> int:
        _, _, height, width = self.operation.weights.shape
        return len(group) * len(self._planes(group[0])) * len(self.parts) * height * width

    def _groups(self, tile: int) -> range:
        per_group = self.operation.outputs // self.operation.groups
        last = min((tile + 1) * self.size, self.operation.outputs) - 1
        return range(tile * self.size // per_group, last // per_group + 1)

    def _planes(self, tile: int) -> range:
        """The input planes that an output tile's groups read."""
        groups, per_group = self._groups(tile), self.operation.weights.shape[1]
        return range(groups.start * per_group // self.size, -(-groups.stop * per_group // self.size))

    def count(self) -> int:
        """Weight tiles of all output tiles."""
        return sum(self._count(group) for group in self.groups)

    @property
    def singles(self) -> list[range]:
        """Output tiles one by one."""
        return [range(tile, tile + 1) for tile in range(self.tiles)]

    def bytes(self) -> Iterator[NDArray[np.uint8]]:
        """All weight tiles as they lie in memory, (S, S) bytes each; row k holds the weights of input k."""
        for group in self._stored:
            blocks: dict[tuple[int, int, int], NDArray[np.uint8]] = {}
            for step in self.steps(group):
                key = step.tile, step.plane, step.part
                if key not in blocks:
                    blocks = {key: self._block(*key)}
                yield blocks[key][step.ky, step.kx]

    def _block(self, tile: int, plane: int, part: int) -> NDArray[np.uint8]:
        """The tiles of all kernel positions for one input plane, (kernel height, kernel width, S, S)."""
        size, operation = self.size, self.operation
        weights = self.parts[part]
        outputs, per_group, height, width = weights.shape
        outputs_per_group = outputs // operation.groups
        block = np.zeros((height, width, size, size), np.int16)
        for group in self._groups(tile):
            # Inputs and outputs of the group that lie in this plane and tile.
            inputs = _overlap(group * per_group, per_group, plane * size, size)
            columns = _overlap(group * outputs_per_group, outputs_per_group, tile * size, size)
            if not inputs or not columns:
                continue
            rows = slice(inputs.start - group * per_group, inputs.stop - group * per_group)
            kernel = weights[columns.start : columns.stop, rows]
            block[
                :,
                :,
                inputs.start - plane * size : inputs.stop - plane * size,
                columns.start - tile * size : columns.stop - tile * size,
            ] = kernel.transpose(2, 3, 1, 0)
        return ((block + self.format.zero_point) & 0xFF).astype(np.uint8)


def _overlap(first: int, count: int, other: int, other_count: int) -> range:
    return range(max(first, other), min(first + count, other + other_count))


def kernel_tiles(
    operation: Convolution, size: int, together: int = 1, following: int = 1, *, apart: bool = False
) -> KernelTiles:
    """Find bytes for the weights of a convolution."""
    format, parts = byte_parts(operation.weights)
    return KernelTiles(operation, format, tuple(parts), size, together, following, apart)
