"""What it costs to compute operations together: a rough model, good enough to compare ways to cut a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.emit.tiles import kernel_tiles
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Combination, Convolution, Pooling
from openmxu.compiler.plan.buffers import Region
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["Costs"]

_PARTS = 4
"""Parts of an image of which the activation unit does one while the array does another."""


@dataclass(frozen=True)
class _Work:
    """What a strip takes: its part of an image, or number of images, and cycles."""

    planes: float
    computing: float
    reading: float
    writing: float


@dataclass(frozen=True)
class Costs:
    """Estimates cycles.

    Attributes
    ----------
    tiles
        Weight tiles of every convolution, by its number in the network.
    """

    network: Network
    tiles: Mapping[int, int]
    config: Config

    @classmethod
    def of(cls, network: Network, config: Config) -> Costs:
        """The costs of a network's operations."""
        convolutions = {
            index: operation for index, operation in enumerate(network.operations) if isinstance(operation, Convolution)
        }
        tiles = {index: kernel_tiles(operation, config.size).count() for index, operation in convolutions.items()}
        return cls(network, tiles, config)

    def group(
        self, operations: range, strips: Sequence[Region], slots: int, sources: Sequence[str], targets: Sequence[str]
    ) -> float:
        """Cycles for all strips of a group.

        Array and activation unit work at the same time on different images of a strip, and on different parts of an
        image. Transfers go on beside them, but where there is one slot the next strip is read when one is done, and
        beside the reading of the first strip there is only its first operation, beside the writing of the last one
        only its last operation. Behind a group the array waits until the last sums are activated, written, and read
        by the next group.
        """
        works = self._works(operations, strips, sources, targets)
        cycles = self._unhidden(operations, works)
        serial = slots == 1 and len(strips) > 1
        for work in works:
            beside = max(work.computing, work.writing)
            cycles += beside + work.reading if serial else max(beside, work.reading)
        return cycles + self.config.accumulator_rows // 2 * (self.config.column_groups + 2 * row_cycles(self.config))

    def pipeline(
        self, operations: range, strips: Sequence[Region], slots: int, sources: Sequence[str], targets: Sequence[str]
    ) -> float:
        """Cycles for all strips of a group, to choose their sizes: finer than :meth:`group`.

        Beside a strip the one before is written and the next one read. Where all that an operation makes in a strip is
        one band, the next operation waits until that is activated.
        """
        works = self._works(operations, strips, sources, targets)
        cycles = self._unhidden(operations, works)
        for number, work in enumerate(works):
            computing = work.computing + sum(self._drain(index, work.planes) for index in operations[:-1])
            before = works[number - 1].writing if number else 0
            after = works[number + 1].reading if number + 1 < len(works) else 0
            cycles += max(computing, before) + after if slots == 1 else max(computing, before, after)
        return cycles

    def _works(
        self, operations: range, strips: Sequence[Region], sources: Sequence[str], targets: Sequence[str]
    ) -> list[_Work]:
        """What there is to do for each strip."""
        last = self.network.tensors[self.network.operations[operations[-1]].target]
        works = []
        for strip in strips:
            planes = strip.positions / last.positions
            array = sum(self._array(index, planes) for index in operations)
            activation = sum(self._activation(index, planes) for index in operations)
            computing = max(array, activation) + min(array, activation) / (_PARTS * len(strip.images))
            reading, writing = self._transfers(sources, planes), self._transfers(targets, planes)
            works.append(_Work(planes, computing, reading, writing))
        return works

    def _unhidden(self, operations: range, works: Sequence[_Work]) -> float:
        """Cycles of reading the first strip that its first operation does not hide, and of writing the last strip that
        its last operation does not."""
        first, last = works[0], works[-1]
        reading = max(0.0, first.reading - self._array(operations[0], first.planes))
        return reading + max(0.0, last.writing - self._array(operations[-1], last.planes))

    def _drain(self, index: int, planes: float) -> float:
        """Cycles in which the array waits for the activation of all that an operation makes, if that is one band."""
        rows = planes * self.network.sums(self.network.operations[index]) if index in self.tiles else 0
        is_band = 0 < rows <= self.config.accumulator_rows // 2
        return rows * self.config.column_groups + 2 * self.config.size if is_band else 0

    def _planes(self, name: str) -> int:
        return -(-self.network.tensors[name].channels // self.config.size)

    def _transfers(self, names: Sequence[str], planes: float) -> float:
        """To or from host memory, of so many images, or parts of one."""
        tensors = {name: self.network.tensors[name] for name in names if name not in self.network.constants}
        rows = sum(self._planes(name) * tensor.positions * tensor.item for name, tensor in tensors.items())
        return planes * rows * row_cycles(self.config)

    def _array(self, index: int, planes: float) -> float:
        """Every tile of a band takes as long as its rows, or as its weights."""
        operation = self.network.operations[index]
        if isinstance(operation, TensorProduct):
            size = self.config.size
            tiles = -(-operation.inner // size) * -(-operation.columns // size)
            return planes * len(operation.left.positions) * tiles * max(operation.rows, size)
        if index not in self.tiles:
            return 0
        rows = planes * self.network.sums(operation)
        bands = -(-rows // (self.config.accumulator_rows // 2))
        passed = rows * self.network.passes(operation)
        return self.tiles[index] * max(passed, bands * max(self.config.size, fetch_cycles(self.config)))

    def _activation(self, index: int, planes: float) -> float:
        operation = self.network.operations[index]
        target = self.network.tensors[operation.target]
        passes = target.positions * target.item
        match operation:
            case Convolution(pooling=window) if window is not None:
                passes *= window.height * window.width
            case Pooling(window=window):
                passes *= window.height * window.width
            case Combination():
                passes *= 2
        return planes * self._planes(operation.target) * passes * self.config.column_groups
