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
        last = self.network.tensors[self.network.operations[operations[-1]].target]
        first, end = (strip.positions / last.positions for strip in (strips[0], strips[-1]))
        cycles = max(0.0, self._transfers(sources, first) - self._array(operations[0], first))
        cycles += max(0.0, self._transfers(targets, end) - self._array(operations[-1], end))
        for strip in strips:
            planes = strip.positions / last.positions
            array = sum(self._array(index, planes) for index in operations)
            activation = sum(self._activation(index, planes) for index in operations)
            computing = max(array, activation) + min(array, activation) / (_PARTS * len(strip.images))
            reading, writing = self._transfers(sources, planes), self._transfers(targets, planes)
            serial = slots == 1 and len(strips) > 1
            cycles += max(computing, writing) + reading if serial else max(computing, reading, writing)
        return cycles + self.config.accumulator_rows // 2 * (self.config.column_groups + 2 * row_cycles(self.config))

    def pipeline(
        self, operations: range, strips: Sequence[Region], slots: int, sources: Sequence[str], targets: Sequence[str]
    ) -> float:
        """Cycles for all strips of a group, to choose their sizes: finer than :meth:`group` at both ends.

        Nothing is beside the reading of the first strip but its first operation, and nothing beside the writing of the
        last one but its last operation. Where all that an operation makes in a strip is one band, the next operation
        waits until that is activated.
        """
        last = self.network.tensors[self.network.operations[operations[-1]].target]
        planes = [strip.positions / last.positions for strip in strips]
        reading, writing = ([self._transfers(names, part) for part in planes] for names in (sources, targets))
        cycles = max(0.0, reading[0] - self._array(operations[0], planes[0]))
        cycles += max(0.0, writing[-1] - self._array(operations[-1], planes[-1]))
        for number, (strip, part) in enumerate(zip(strips, planes, strict=True)):
            array = sum(self._array(index, part) for index in operations)
            activation = sum(self._activation(index, part) for index in operations)
            computing = max(array, activation) + min(array, activation) / (_PARTS * len(strip.images))
            computing += sum(self._drain(index, part) for index in operations[:-1])
            before, after = writing[number - 1] if number else 0, (*reading, 0)[number + 1]
            cycles += max(computing, before) + after if slots == 1 else max(computing, before, after)
        return cycles

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
