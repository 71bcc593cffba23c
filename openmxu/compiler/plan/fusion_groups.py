"""How a network is cut to fit the unified buffer.

A *group* of consecutive operations works on one *strip* after the other without leaving the unified buffer: a strip is
some images of the batch, or where not even one image fits, some rows or columns of what a single operation makes.
Between groups tensors lie in host memory.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openmxu.arch.config import Config
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.operations import Convolution, Operation
from openmxu.compiler.ir.permutation import Permutation
from openmxu.compiler.plan.buffers import Region
from openmxu.compiler.plan.costs import Costs
from openmxu.compiler.plan.slots import Slot, distinct, image_slots, lifetimes, slot_of, strip_buffers
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.layout import Layout, plan_cell
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["Group", "plan_groups"]

_STRIPS = 8
"""Strips of a batch that goes through several matrix products in waves, where it has rows enough."""

_OUTPUTS = 6
"""Output planes of a matrix product in the unified buffer at a time, where not all of them have room."""

_SIZES = 4
"""Numbers of images in a strip below the largest one that are tried beside its half, its quarter and so on."""

_GAIN = 0.99
"""Smaller strips are used where their estimated cycles are below this part of those of the largest ones: estimates are
rough."""

_DISPATCH_CYCLES = 6
"""For one instruction."""


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
        1, or 2 where one strip can be read while another is worked on, or more in waves: strips that some tensor of
        the group holds at a time.
    slot_rows
        Unified buffer rows of a slot.
    addresses
        Of each tensor, from the beginning of its slot.
    sources, targets
        Tensors that come from host memory and that go there.
    layout
        Of a recurrent cell, which is a group of its own, in place of addresses.
    waves
        An operation works on one strip while the next operation works on the strip before: matrix products, each of
        which would otherwise wait until the one before it is activated.
    rings
        For each tensor of which only some planes are in the unified buffer at a time, their number.
    together
        Output tiles of a matrix product that are summed up side by side, each time that its input is read.
    first_row
        Unified buffer rows in front of the first slot, of those that groups have.
    """

    operations: range
    strips: tuple[Region, ...]
    slots: int
    slot_rows: int
    addresses: Mapping[str, int]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    layout: Layout | None = None
    waves: bool = False
    rings: Mapping[str, int] = field(default_factory=dict)
    together: int = 1
    first_row: int = 0

    @property
    def last_rows(self) -> range:
        """The rows of the last strip's slot; of strips that work in waves, those of all slots."""
        slot = (len(self.strips) - 1) % self.slots
        first, count = (0, self.slots) if self.waves else (slot, 1)
        return range(self.first_row + first * self.slot_rows, self.first_row + (first + count) * self.slot_rows)


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
    return tuple(_apart(groups, planner.available))


def _apart(groups: Sequence[Group], available: int) -> Iterator[Group]:
    """Groups, each at that end of ``available`` rows where it takes fewer of those that the last strip before it takes:
    the others can be read while the array works on that strip."""
    taken = range(0)
    for group in groups:
        rows = group.slots * group.slot_rows
        at_end = range(available - rows, available)
        if group.layout is None and _common(taken, range(rows)) > _common(taken, at_end):
            group = dataclasses.replace(group, first_row=at_end.start)
        taken = group.last_rows
        yield group


def _common(one: range, other: range) -> int:
    """Numbers in both."""
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))


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
        return [self.refined(group) for group in best[operations.stop][1]]

    def _cost(self, group: Group) -> float:
        return self.costs.group(group.operations, group.strips, group.slots, group.sources, group.targets)

    def _pipeline(self, group: Group) -> float:
        return self.costs.pipeline(group.operations, group.strips, group.slots, group.sources, group.targets)

    def choices(self, operations: range) -> list[Group]:
        """Groups of just these operations; none where they do not fit, but one of a single operation always does."""
        target = self.network.tensors[self.network.operations[operations[-1]].target]
        found: dict[int, Group] = {}
        for images, slot in self._slots(operations, self._images):
            strips = self._strips(target, _parts(self.batch, images))
            for slots in {1, 2} - found.keys():
                group = self._group(operations, strips, slot, slots)
                if group is not None:
                    found[slots] = group
            if len(found) == 2:
                break
        waves = self._waves(operations)
        if waves is not None:
            return [waves]
        if len(operations) == 1 and all(len(group.strips) > 1 for group in found.values()):
            product = self._product(operations.start)
            if product is not None:
                return [product]
        return list(found.values()) if found or len(operations) > 1 else [self.parts(operations.start)]

    def _strips(self, target: Tensor, parts: Iterable[range]) -> tuple[Region, ...]:
        """Whole images."""
        return tuple(Region(part, range(target.height), range(target.width)) for part in parts)

    def refined(self, group: Group) -> Group:
        """The group, or a cheaper one with smaller strips, of which the first one may have still fewer images.

        The first strip is read while the array waits; the second one, while it works on the first. One operation alone
        can begin with parts of a strip.
        """
        if len(group.operations) == 1 or self._is_product(self.network.operations[group.operations.start]):
            return group
        target = self.network.tensors[self.network.operations[group.operations[-1]].target]
        choices = [group]
        most = len(group.strips[0].images)
        largest = [images for images in self._images if images <= most][:_SIZES]
        for images in dict.fromkeys([*largest, *_halvings(most)[:_SIZES]]):
            slot = next((slot for number, slot in self._slots(group.operations, [images])), None)
            if slot is None:
                continue
            rest = self.batch % images
            for head in dict.fromkeys([images, rest or images, *_halvings(images)]):
                first, *others = range(head), *_parts(self.batch - head, images)
                parts = [first, *(range(part.start + head, part.stop + head) for part in others)]
                other = self._group(group.operations, self._strips(target, parts), slot, 2)
                if other is not None and len(parts) > 1:
                    choices.append(other)
        best = min(choices, key=self._pipeline)
        return best if self._pipeline(best) < _GAIN * self._pipeline(group) else group

    def _waves(self, operations: range) -> Group | None:
        """Consecutive matrix products on some rows of the batch at a time, where there are enough of them."""
        own = [self.network.operations[index] for index in operations]
        wanted = max(2 * self.config.size, fetch_cycles(self.config))
        images = max(2 * wanted, -(-self.batch // _STRIPS))
        if len(own) == 1 or self.batch <= images or not all(self._is_product(operation) for operation in own):
            return None
        images = -(-self.batch // -(-self.batch // images))
        strips = tuple(Region(part, range(1), range(1)) for part in _parts(self.batch, images))
        slot = slot_of(self.network, operations, strips, self.config.size, overlap=False)
        # In a wave, an operation begins a strip before those behind it go on with earlier ones: until the last one
        # that uses a tensor is done with a strip, the first one has begun as many others as lie between the two.
        longest = max(len(life) for life in lifetimes(self.network, operations).values())
        group = self._group(operations, strips, slot, max(2, longest))
        return None if group is None else dataclasses.replace(group, waves=True)

    def _is_product(self, operation: Operation) -> bool:
        """Whether an operation is a matrix product of its only source."""
        source = self.network.tensors[operation.sources[0]]
        return isinstance(operation, Convolution) and operation.window.is_point and source.positions == 1

    def _slots(self, operations: range, choices: Sequence[int]) -> Iterator[tuple[int, Slot]]:
        """Those numbers of whole images of which a slot fits, and slots for them."""
        if len(operations) > 1:
            _, targets = self._ends(operations)
            yield from image_slots(self.network, operations, targets, choices, self.available, self.config.size)
            return
        target = self.network.tensors[self.network.operations[operations.start].target]
        for images in choices:
            strip = Region(range(images), range(target.height), range(target.width))
            yield images, slot_of(self.network, operations, [strip], self.config.size)

    def recurrent(self, index: int, operation: Recurrent) -> Group:
        """A recurrent cell for as many images at a time as possible."""
        source = self.network.tensors[operation.sources[0]]
        layout = plan_cell(operation, source.channels, self.batch, self.available, self.config)
        strips = tuple(Region(part, range(1), range(1)) for part in _parts(self.batch, layout.images))
        operations = range(index, index + 1)
        return Group(operations, strips, 1, layout.rows, {}, operation.sources, operation.targets, layout)

    def parts(self, index: int) -> Group:
        """One operation on parts of an image, as large as possible: rows, columns, or some of the planes."""
        operation = self.network.operations[index]
        target = self.network.tensors[operation.target]
        if isinstance(operation, TensorProduct):
            whole = Region(range(1), range(target.height), range(target.width))
            raise self._too_small(index, slot_of(self.network, range(index, index + 1), [whole], self.config.size).rows)
        cuts = [(rows, columns, None) for rows, columns in _shrinking(target.height, target.width)]
        is_convolution, is_permuted = isinstance(operation, Convolution), isinstance(operation, Permutation)
        if not is_convolution and not is_permuted:
            planes = -(-target.channels // self.config.size)
            counts = list(dict.fromkeys(-(-planes // count) for count in range(2, planes + 1)))
            cuts += [(target.height, target.width, count) for count in counts]
            cuts += [(rows, columns, 1) for rows, columns in _shrinking(target.height, target.width)]
        for slots in (2, 1):
            for cut in cuts:
                if not is_permuted and self._samples_slot(index, target, cut).rows * slots > self.available:
                    continue
                group = self._of_parts(index, self._regions(target, *cut), slots)
                if group is not None:
                    return self._fewer_weights(index, group) if is_convolution else group
        if is_convolution:
            group = self._with_rings(index)
            if group is not None:
                return group
        smallest = self._regions(target, *cuts[-1])
        slot = slot_of(self.network, range(index, index + 1), smallest, self.config.size)
        if is_convolution:
            slot = self._ring_slot(index, smallest, {operation.sources[0]: 1, operation.target: 1})
        raise self._too_small(index, slot.rows)

    def _too_small(self, index: int, rows: int) -> CapacityError:
        """The error that an operation needs so many rows."""
        name, needed = self.network.operations[index].name, self.config.unified_buffer_rows - self.available + rows
        return CapacityError(
            f"node {name!r}: unified_buffer_rows is {self.config.unified_buffer_rows}, but it needs at least {needed}; "
            "choose a configuration with more rows, or wider ones",
            name,
        )

    def _regions(self, target: Tensor, rows: int, columns: int, planes: int | None = None) -> tuple[Region, ...]:
        """Parts of every image with so many rows, columns and planes; all planes where there is no number."""
        all_planes = -(-target.channels // self.config.size)
        return tuple(
            Region(range(image, image + 1), part, other, some)
            for image in range(self.batch)
            for some in ([None] if planes is None else _parts(all_planes, planes))
            for part in _parts(target.height, rows)
            for other in _parts(target.width, columns)
        )

    def _samples_slot(self, index: int, target: Tensor, cut: tuple[int, int, int | None]) -> Slot:
        """A slot for some of the parts that a cut makes: at both edges of the plane, and in its middle.

        Of all parts there may be very many. What one of them needs is bounded at the edges only.
        """
        rows, columns, planes = cut
        images = range(1)
        some = None if planes is None else range(min(planes, -(-target.channels // self.config.size)))
        samples = [
            Region(images, part, other, some)
            for part in _samples(target.height, rows)
            for other in _samples(target.width, columns)
        ]
        return slot_of(self.network, range(index, index + 1), samples, self.config.size)

    def _of_parts(self, index: int, strips: tuple[Region, ...], slots: int) -> Group | None:
        operations = range(index, index + 1)
        slot = slot_of(self.network, operations, strips, self.config.size)
        return self._group(operations, strips, slot, slots)

    def _fewer_weights(self, index: int, group: Group) -> Group:
        """The group, or one with rings where that is much faster: strips of few outputs wait for their weights."""
        if self._array_rows(group) <= sum(strip.positions for strip in group.strips):
            return group
        other = self._with_rings(index)
        return group if other is None or 2 * self._array_rows(other) > self._array_rows(group) else other

    def _array_rows(self, group: Group) -> int:
        """Rows that the array could multiply by each tile of a convolution in the time that it takes."""
        return sum(max(strip.positions, self.config.size, fetch_cycles(self.config)) for strip in group.strips)

    def _with_rings(self, index: int) -> Group | None:
        """A convolution with only a few planes of input and output in the unified buffer at a time.

        The planes of the input are read anew for each output tile.
        """
        operation = self.network.operations[index]
        target = self.network.tensors[operation.target]
        whole = (target.height, target.width)
        for rows, columns in (whole, *_shrinking(*whole)):
            strips = self._regions(target, rows, columns)
            for inputs, outputs in ((self.config.command_queue_depth + 2, 2), (2, 2), (1, 1)):
                rings = {operation.sources[0]: inputs, operation.target: outputs}
                group = self._group(range(index, index + 1), strips, self._ring_slot(index, strips, rings), 1)
                if group is not None:
                    return dataclasses.replace(group, rings=rings)
        return None

    def _ring_slot(self, index: int, strips: tuple[Region, ...], rings: Mapping[str, int]) -> Slot:
        """A slot for a convolution with so many planes of its source and its target."""
        rows = dict.fromkeys(rings, 0)
        for strip in distinct(strips):
            buffers = strip_buffers(self.network, range(index, index + 1), strip, {}, self.config.size)
            for name, buffer in buffers.items():
                planes = min(buffer.planes, rings[name])
                rows[name] = max(rows[name], planes * buffer.plane_elements * buffer.tensor.item)
        source, target = rings
        return Slot(rows[source] + rows[target], {target: 0, source: rows[target]})

    def _product(self, index: int) -> Group | None:
        """A matrix product of more rows than fit, with only a few planes of the output in the unified buffer at a time.

        Where rows are long, only a few planes of the input are there either: they are read anew for each group of
        output tiles, which are as many as multiply a plane for longer than it takes to read it.
        """
        operation = self.network.operations[index]
        if not self._is_product(operation):
            return None
        (source,), target = operation.sources, operation.target
        planes = -(-self.network.tensors[source].channels // self.config.size)
        item, ahead = self.network.tensors[target].item, self.config.command_queue_depth + 2
        # Input planes of int16 take two rows an image, and pass the array twice.
        input_item = self.network.tensors[source].item
        size, accumulators = self.config.size, self.config.accumulator_rows
        tiles = -(-operation.outputs // size)
        # Slots, planes of input and output, output tiles side by side, and the images for which they have room.
        ways = [(2, planes, _OUTPUTS, 1, self.available // (2 * (planes * input_item + _OUTPUTS * item)))]
        for inputs, outputs in ((ahead, 2), (2, 2), (1, 1)):
            room = self.available // (inputs * input_item + outputs * item)
            if room:
                ways += [
                    (1, inputs, outputs, together, min(room, accumulators // (2 * together)))
                    for together in range(1, min(tiles, accumulators // 2) + 1)
                ]
                break

        def cycles(way: tuple[int, ...]) -> int:
            """Reading, computing or dispatch, whichever takes longest; the first of equal ways is the best one."""
            _, inputs, _, together, room = way
            strips = -(-self.batch // room)
            images = -(-self.batch // strips)
            bands = strips * -(-images // (accumulators // 2))
            reading = self.batch * input_item * row_cycles(self.config)
            tile = max(self.batch * input_item, bands * max(size, fetch_cycles(self.config)))
            if inputs == planes:
                return planes * max(reading, tiles * tile)
            groups = [len(part) for part in _parts(tiles, together)]
            return planes * sum(max(reading, group * tile, strips * (group + 1) * _DISPATCH_CYCLES) for group in groups)

        ways = [way for way in ways if way[-1] > 0]
        if not ways:
            return None
        slots, inputs, outputs, together, room = min(ways, key=cycles)
        images = -(-self.batch // -(-self.batch // room))
        strips = tuple(Region(part, range(1), range(1)) for part in _parts(self.batch, images))
        rows = images * (inputs * input_item + outputs * item)
        slot = Slot(rows, {target: 0, source: images * outputs * item})
        group = self._group(range(index, index + 1), strips, slot, slots)
        return dataclasses.replace(group, rings={source: inputs, target: outputs}, together=together)

    def _group(self, operations: range, strips: tuple[Region, ...], slot: Slot, slots: int) -> Group | None:
        """A group with so many slots, or one for each strip where there are fewer; ``None`` where they do not fit."""
        slots = min(slots, len(strips))
        if slots * slot.rows > self.available:
            return None
        return Group(operations, strips, slots, slot.rows, slot.addresses, *self._ends(operations))

    @functools.cached_property
    def _images(self) -> Sequence[int]:
        """Numbers of images in a strip that differ in the number of strips, the largest one first."""
        return sorted({-(-self.batch // count) for count in range(1, self.batch + 1)}, reverse=True)

    @functools.cached_property
    def _uses(self) -> Counter[str]:
        """How often each tensor is read, by operations and as an output."""
        uses = Counter(name for operation in self.network.operations for name in operation.sources)
        uses.update(port.tensor for port in self.network.outputs)
        return uses

    def _ends(self, operations: range) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tensors that come from host memory and that go there."""
        network = self.network
        own = [network.operations[index] for index in operations]
        made = [operation.target for operation in own]
        read = [name for operation in own for name in operation.sources if name not in made]
        inside = Counter(name for operation in own for name in operation.sources)
        leaving = tuple(name for name in made if self._uses[name] > inside[name])
        return tuple(dict.fromkeys(read)), leaving


def _parts(length: int, part: int) -> list[range]:
    return [range(start, min(start + part, length)) for start in range(0, length, part)]


def _halvings(length: int) -> list[int]:
    """A length, half of it, a quarter, and so on to 1, rounded up."""
    return [length, *(_halvings(-(-length // 2)) if length > 1 else [])]


def _samples(length: int, part: int) -> list[range]:
    """The first, the second, one in the middle, and the last two of the parts of a length."""
    starts = range(0, length, part)
    places = sorted({0, min(1, len(starts) - 1), len(starts) // 2, max(0, len(starts) - 2), len(starts) - 1})
    return [range(starts[place], min(starts[place] + part, length)) for place in places]


def _shrinking(height: int, width: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of ever smaller strips of a plane."""
    for rows in dict.fromkeys(-(-height // count) for count in range(2, height + 1)):
        yield rows, width
    for columns in dict.fromkeys(-(-width // count) for count in range(2, width + 1)):
        yield 1, columns
    yield 1, 1
