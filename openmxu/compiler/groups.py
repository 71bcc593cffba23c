"""How a network is cut to fit the unified buffer.

A *group* of consecutive operations works on one *strip* after the other without leaving the unified buffer: a strip is
some images of the batch, or where not even one image fits, some rows or columns of what a single operation makes.
Between groups tensors lie in host memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.buffers import Buffer, Region
from openmxu.compiler.costs import Costs
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.network import Network, Tensor
from openmxu.compiler.operations import Convolution, Operation, Pooling
from openmxu.compiler.rearrangement import Rearrangement
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.layout import Layout, plan_cell
from openmxu.compiler.window import Window

__all__ = ["Group", "plan_groups", "strip_buffers"]


@dataclass(frozen=True)
class Group:
    """Operations that work strip by strip.

    Attributes
    ----------
    operations
        Their numbers in the network.
    strips
        Regions of the target of the last one.
    slots
        1, or 2 where one strip can be read while another is worked on.
    slot_rows
        Unified buffer rows of a slot.
    addresses
        Of each tensor, from the beginning of its slot.
    sources, targets
        Tensors that come from host memory and that go there.
    layout
        Of a recurrent cell, which is a group of its own, in place of addresses.
    """

    operations: range
    strips: tuple[Region, ...]
    slots: int
    slot_rows: int
    addresses: Mapping[str, int]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    layout: Layout | None = None


def _source_region(operation: Operation, target: Region, source: Tensor) -> Region:
    """What an operation reads of a source to make a region of its target."""
    rows, columns = target.rows, target.columns
    for window, plane in reversed(_windows(operation, source)):
        rows, columns = window.rows(rows, plane[0]), window.columns(columns, plane[1])
    return Region(target.images, rows, columns)


def _windows(operation: Operation, source: Tensor) -> list[tuple[Window, tuple[int, int]]]:
    """The windows that an operation applies one after the other, each with the plane that it reads."""
    plane = (source.height, source.width)
    match operation:
        case Convolution(pooling=None) | Pooling():
            return [(operation.window, plane)]
        case Convolution():
            return [(operation.window, plane), (operation.pooling, operation.window.outputs(*plane))]
    return []


def plan_groups(network: Network, batch: int, base: int, config: Config) -> tuple[Group, ...]:
    """Cut a network into groups that have the unified buffer rows from ``base`` on.

    Raises
    ------
    CapacityError
        The unified buffer does not even hold what one output of some operation needs.
    """
    planner = _Planner(network, batch, config, config.unified_buffer_rows - base, Costs.of(network, config))
    groups: list[Group] = []
    first = 0
    for index, operation in enumerate(network.operations):
        if isinstance(operation, Recurrent):
            groups += planner.cut(range(first, index))
            groups.append(planner.recurrent(index, operation))
            first = index + 1
    groups += planner.cut(range(first, len(network.operations)))
    return tuple(groups)


@dataclass(frozen=True)
class _Planner:
    network: Network
    batch: int
    config: Config
    available: int
    costs: Costs

    def cut(self, operations: range) -> list[Group]:
        """The groups of some operations that together cost least."""
        best: dict[int, tuple[float, list[Group]]] = {operations.start: (0, [])}
        for first in operations:
            before, groups = best[first]
            for stop in range(first + 1, operations.stop + 1):
                choices = self.choices(range(first, stop))
                if not choices:
                    break
                group = min(choices, key=self._cost)
                cost = before + self._cost(group)
                if stop not in best or cost < best[stop][0]:
                    best[stop] = cost, [*groups, group]
        return best[operations.stop][1]

    def _cost(self, group: Group) -> float:
        return self.costs.group(group.operations, group.strips, group.slots, group.sources, group.targets)

    def choices(self, operations: range) -> list[Group]:
        """Groups of just these operations; none where they do not fit, but one of a single operation always does."""
        groups = [group for slots in (1, 2) if (group := self.whole(operations, slots)) is not None]
        return groups if groups or len(operations) > 1 else [self.parts(operations.start)]

    def recurrent(self, index: int, operation: Recurrent) -> Group:
        """A recurrent cell for as many images at a time as possible."""
        source = self.network.tensors[operation.sources[0]]
        layout = plan_cell(operation, source.channels, self.batch, self.available, self.config)
        strips = tuple(Region(part, range(1), range(1)) for part in _parts(self.batch, layout.images))
        operations = range(index, index + 1)
        return Group(operations, strips, 1, layout.rows, {}, operation.sources, operation.targets, layout)

    def parts(self, index: int) -> Group:
        """One operation on rows of an image, or on columns, as many as possible."""
        operations = range(index, index + 1)
        target = self.network.tensors[self.network.operations[index].target]
        for slots in (2, 1):
            for rows, columns in _shrinking(target.height, target.width):
                strips = tuple(
                    Region(range(image, image + 1), part, other)
                    for image in range(self.batch)
                    for part in _parts(target.height, rows)
                    for other in _parts(target.width, columns)
                )
                group = self._group(operations, strips, slots)
                if group is not None:
                    return group
        name = self.network.operations[index].name
        needed = self.config.unified_buffer_rows - self.available + self._slot(operations, strips)[0]
        raise CapacityError(
            f"node {name!r}: unified_buffer_rows is {self.config.unified_buffer_rows}, but it needs at least {needed}"
        )

    def whole(self, operations: range, slots: int) -> Group | None:
        """Operations on whole images, as many at a time as possible; ``None`` where not even one fits."""
        target = self.network.tensors[self.network.operations[operations[-1]].target]
        for images in sorted({-(-self.batch // count) for count in range(1, self.batch + 1)}, reverse=True):
            strips = tuple(
                Region(part, range(target.height), range(target.width)) for part in _parts(self.batch, images)
            )
            group = self._group(operations, strips, slots)
            if group is not None:
                return group
        return None

    def _group(self, operations: range, strips: tuple[Region, ...], slots: int) -> Group | None:
        """A group with so many slots, or one for each strip where there are fewer; ``None`` where they do not fit."""
        rows, addresses = self._slot(operations, strips)
        slots = min(slots, len(strips))
        if slots * rows > self.available:
            return None
        return Group(operations, strips, slots, rows, addresses, *self._ends(operations))

    def _ends(self, operations: range) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tensors that come from host memory and that go there."""
        network = self.network
        own = [network.operations[index] for index in operations]
        made = [operation.target for operation in own]
        read = [name for operation in own for name in operation.sources if name not in made]
        inside = Counter(name for operation in own for name in operation.sources)
        leaving = tuple(name for name in made if network.uses(name) > inside[name])
        return tuple(dict.fromkeys(read)), leaving

    def _slot(self, operations: range, strips: tuple[Region, ...]) -> tuple[int, dict[str, int]]:
        """Rows of a slot for any of the strips, and where in it tensors lie."""
        sizes: dict[str, int] = {}
        for strip in _distinct(strips):
            for name, buffer in strip_buffers(self.network, operations, strip, {}, self.config.size).items():
                rows = buffer.elements * buffer.tensor.item + self._guard(operations, name, buffer)
                sizes[name] = max(sizes.get(name, 0), rows)
        lifetimes = {name: _lifetime(self.network, operations, name) for name in sizes}
        return _first_fit(sizes, lifetimes)

    def _guard(self, operations: range, name: str, buffer: Buffer) -> int:
        """Rows behind a tensor that averages may seem to read: their planes begin in the middle of a row."""
        averages = any(
            isinstance(operation, Pooling) and not operation.maximum and name in operation.sources
            for operation in (self.network.operations[index] for index in operations)
        )
        return buffer.width if averages else 0


def strip_buffers(
    network: Network, operations: range, strip: Region, addresses: Mapping[str, int], size: int
) -> dict[str, Buffer]:
    """The buffers of a group's tensors for one strip, by name; ``addresses`` are their first rows, 0 where missing."""
    buffers: dict[str, Buffer] = {}

    def place(name: str, region: Region) -> None:
        tensor, shared = network.tensors[name], name in network.constants
        if shared:
            region = Region(range(1), region.rows, region.columns)
        planes = -(-tensor.channels // size)
        buffers.setdefault(name, Buffer(tensor, planes, region, addresses.get(name, 0), shared))

    for index in reversed(operations):
        operation = network.operations[index]
        is_whole = len(operations) > 1
        tensor = network.tensors[operation.target]
        region = strip
        if is_whole:
            region = Region(strip.images, range(tensor.height), range(tensor.width))
        place(operation.target, region)
        for name in operation.sources:
            source = network.tensors[name]
            if is_whole:
                place(name, Region(strip.images, range(source.height), range(source.width)))
            elif isinstance(operation, Rearrangement):
                place(name, Region(strip.images, *operation.needs(name, network.tensors, region.rows, region.columns)))
            else:
                place(name, _source_region(operation, region, source))
    return buffers


def _lifetime(network: Network, operations: range, name: str) -> range:
    """The operations of a group during which a tensor is in the unified buffer."""
    uses = [
        index
        for index in operations
        if name in network.operations[index].sources or network.operations[index].target == name
    ]
    return range(uses[0], uses[-1] + 1)


def _first_fit(sizes: Mapping[str, int], lifetimes: Mapping[str, range]) -> tuple[int, dict[str, int]]:
    """Addresses at which no two tensors that live at the same time overlap, and where the last one ends."""
    addresses: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: lifetimes[name].start):
        others = sorted(
            (addresses[other], addresses[other] + sizes[other])
            for other in addresses
            if lifetimes[other].start < lifetimes[name].stop and lifetimes[name].start < lifetimes[other].stop
        )
        address = 0
        for start, stop in others:
            if address + sizes[name] <= start:
                break
            address = max(address, stop)
        addresses[name] = address
    return max(addresses[name] + sizes[name] for name in sizes), addresses


def _distinct(strips: tuple[Region, ...]) -> Iterator[Region]:
    """Strips without those that differ from another one in their images only."""
    seen = set()
    for strip in strips:
        key = (len(strip.images), strip.rows, strip.columns)
        if key not in seen:
            seen.add(key)
            yield strip


def _parts(length: int, part: int) -> list[range]:
    return [range(start, min(start + part, length)) for start in range(0, length, part)]


def _shrinking(height: int, width: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of ever smaller strips of a plane."""
    for count in range(2, height + 1):
        yield -(-height // count), width
    for count in range(2, width + 1):
        yield 1, -(-width // count)
    yield 1, 1
