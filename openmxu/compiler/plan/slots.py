"""What a strip needs of the unified buffer, and where its tensors lie there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.operations import Convolution, Operation, Pooling
from openmxu.compiler.ir.permutation import Permutation
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.buffers import Buffer, Region
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["Slot", "distinct", "image_slots", "lifetimes", "slot_of", "strip_buffers"]


@dataclass(frozen=True)
class Slot:
    """Rows that a strip takes, and the first of them for each tensor."""

    rows: int
    addresses: Mapping[str, int]


def strip_buffers(
    network: Network,
    operations: range,
    strip: Region,
    addresses: Mapping[str, int],
    size: int,
    rings: Mapping[str, int] | None = None,
) -> dict[str, Buffer]:
    """The buffers of a group's tensors for one strip, by name; ``addresses`` are their first rows, 0 where missing.

    ``rings`` are numbers of planes, where not all of them are in the unified buffer at a time.
    """
    buffers: dict[str, Buffer] = {}

    def place(name: str, region: Region) -> None:
        tensor, shared = network.tensors[name], name in network.constants
        if shared:
            region = Region(range(1), region.rows, region.columns, region.planes)
        planes = -(-tensor.channels // size) if region.planes is None else len(region.planes)
        ring = (rings or {}).get(name, 0)
        buffers.setdefault(name, Buffer(tensor, planes, region, addresses.get(name, 0), shared, ring))

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
            if is_whole or isinstance(operation, TensorProduct):
                place(name, Region(strip.images, range(source.height), range(source.width)))
            elif isinstance(operation, Permutation):
                place(name, Region(strip.images, *operation.needs(name, network.tensors, region.rows, region.columns)))
            else:
                place(name, _source_region(operation, region, source))
    return buffers


def slot_of(network: Network, operations: range, strips: Sequence[Region], size: int, overlap: bool = True) -> Slot:
    """A slot for any of the strips of some operations; tensors may ``overlap`` that do not live at the same time."""
    sizes: dict[str, int] = {}
    guarded, loaded = _averaged(network, operations), _loaded(network, operations)
    for strip in distinct(strips):
        for name, buffer in strip_buffers(network, operations, strip, {}, size).items():
            rows = buffer.elements * buffer.tensor.item + (buffer.width if name in guarded else 0)
            rows += size if name in loaded else 0
            sizes[name] = max(sizes.get(name, 0), rows)
    return _first_fit(sizes, lifetimes(network, operations) if overlap else dict.fromkeys(sizes, operations))


def image_slots(
    network: Network, operations: range, targets: Collection[str], choices: Sequence[int], available: int, size: int
) -> Iterator[tuple[int, Slot]]:
    """Slots for several operations on whole images.

    Parameters
    ----------
    targets
        Tensors that go to host memory.
    choices
        Numbers of images.
    available
        Rows of the unified buffer: slots that are larger are left out.
    """
    lives, guarded = lifetimes(network, operations), _averaged(network, operations)
    # A target is written while the next operation works, whose results should not wait for its rows.
    longer = {name: range(life.start, life.stop + (name in targets)) for name, life in lives.items()}
    tensors = {name: network.tensors[name] for name in lives}
    rows = {name: -(-tensor.channels // size) * tensor.positions * tensor.item for name, tensor in tensors.items()}
    own = {name: 0 if name in network.constants else rows[name] for name in rows}
    fixed = {name: rows[name] - own[name] + (tensors[name].width if name in guarded else 0) for name in rows}
    fixed |= {name: fixed[name] + size for name in _loaded(network, operations)}
    most = max(sum(own[name] for name, life in lives.items() if index in life) for index in operations)
    for images in choices:
        if images * most <= available:
            sizes = {name: images * own[name] + fixed[name] for name in rows}
            slot = _first_fit(sizes, lives)
            if slot.rows <= available:
                apart = _first_fit(sizes, longer)
                yield images, apart if apart.rows <= slot.rows else slot


def lifetimes(network: Network, operations: range) -> dict[str, range]:
    """The operations of a group during which each tensor is in the unified buffer.

    What an operation makes comes before what only it reads: so sources of the group lie behind the tensors that are
    made first, where others overwrite them late, and the next strip's can be read early.
    """
    lives: dict[str, range] = {}
    for index in operations:
        operation = network.operations[index]
        for name in (operation.target, *operation.sources):
            lives[name] = range(lives[name].start if name in lives else index, index + 1)
    return lives


def _averaged(network: Network, operations: range) -> set[str]:
    """Tensors behind which averages may seem to read a row: their planes begin in the middle of one."""
    own = [network.operations[index] for index in operations]
    averages = [operation for operation in own if isinstance(operation, Pooling) and not operation.maximum]
    return {name for operation in averages for name in operation.sources}


def _loaded(network: Network, operations: range) -> set[str]:
    """Tensors that tiles are loaded from: the last one may reach beyond the last row."""
    own = [network.operations[index] for index in operations]
    return {operation.sources[1] for operation in own if isinstance(operation, TensorProduct)}


def _first_fit(sizes: Mapping[str, int], lives: Mapping[str, range]) -> Slot:
    """Addresses at which no two tensors that live at the same time overlap, and where the last one ends."""
    addresses: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: lives[name].start):
        others = sorted(
            (addresses[other], addresses[other] + sizes[other])
            for other in addresses
            if lives[other].start < lives[name].stop and lives[name].start < lives[other].stop
        )
        address = 0
        for start, stop in others:
            if address + sizes[name] <= start:
                break
            address = max(address, stop)
        addresses[name] = address
    return Slot(max(addresses[name] + sizes[name] for name in sizes), addresses)


def distinct(strips: Sequence[Region]) -> Iterator[Region]:
    """Strips without those that differ from another one in their images only."""
    seen = set()
    for strip in strips:
        key = (len(strip.images), strip.rows, strip.columns, strip.planes and len(strip.planes))
        if key not in seen:
            seen.add(key)
            yield strip


def _source_region(operation: Operation, target: Region, source: Tensor) -> Region:
    """What an operation reads of a source to make a region of its target."""
    rows, columns = target.rows, target.columns
    for window, plane in reversed(_windows(operation, source)):
        rows, columns = window.rows(rows, plane[0]), window.columns(columns, plane[1])
    return Region(target.images, rows, columns, target.planes)


def _windows(operation: Operation, source: Tensor) -> list[tuple[Window, tuple[int, int]]]:
    """The windows that an operation applies one after the other, each with the plane that it reads."""
    plane = (source.height, source.width)
    match operation:
        case Convolution(pooling=None) | Pooling():
            return [(operation.window, plane)]
        case Convolution():
            return [(operation.window, plane), (operation.pooling, operation.window.outputs(*plane))]
    return []
