"""How a recurrent cell is cut to fit the memories: parts of the batch, blocks of units, places in the unified buffer.

A step of a sequence needs what the whole step before has made, so the array waits for the activation unit and the other
way round, unless there is other work between: *parts* of the batch take turns. Within a step, *blocks* of output tiles
are summed up one after the other, so that one block is activated while the next one is summed up.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.effects import table_rows
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.plan.staging import fetch_cycles
from openmxu.compiler.recurrent.cell import INPUT, Phase, Recurrent, Step

__all__ = [
    "Layout",
    "Product",
    "kept_rows",
    "local_values",
    "plan_cell",
    "products",
    "step_cycles",
    "step_passes",
    "step_tiles",
    "tiles",
]

_INPUT_SLOTS = 6
"""Steps of the input that are in the unified buffer at a time, where there is room."""

_BLOCKS = 4
"""Blocks of a step of one phase where a batch has one part only; two of each phase where there are several, or where
parameters are loaded anew for every block."""


@dataclass(frozen=True)
class Product:
    """One weight tile: plane ``plane`` of a value times the weights of a sum's output tile.

    Attributes
    ----------
    sum
        Number of the sum in its phase.
    factor
        What is on the diagonal of the tile; ``None`` for a tile of weights.
    is_first
        Nothing is there yet that it adds to.
    reuses
        The array holds the tile already.
    """

    sum: int
    value: str
    plane: int
    tile: int
    factor: int | None = None
    is_first: bool = False
    reuses: bool = False


@dataclass(frozen=True)
class Layout:
    """Where everything lies while some images of a batch go through a cell.

    Attributes
    ----------
    size
        S.
    images
        At a time.
    parts
        Images of each part, counted from the first image at a time.
    blocks
        For each phase the output tiles of each block.
    input_slots
        Parts of steps of the input in the unified buffer.
    input_planes
        Planes of the input.
    places
        First unified buffer rows of tables and values, from the beginning of the layout. Values that the array
        multiplies and that go from step to step have two places.
    rows
        Of all of it.
    """

    size: int
    images: int
    parts: tuple[range, ...]
    blocks: tuple[tuple[range, ...], ...]
    input_slots: int
    input_planes: int
    places: Mapping[str, tuple[int, ...]]
    rows: int

    @property
    def part_rows(self) -> int:
        """Images of the largest part."""
        return len(self.parts[0])


def products(operation: Recurrent, phase: int, block: range, size: int) -> tuple[list[Product], list[Product]]:
    """The weight tiles of a block in the order of use: of the input, and of the cell's values."""
    found = [*_weight_products(operation.phases[phase], block, size), *_factor_products(operation.phases[phase], block)]
    done: set[tuple[int, int]] = set()
    previous: Product | None = None
    parts: tuple[list[Product], list[Product]] = [], []
    for item in found:
        reuses = previous is not None and item.factor is not None and previous.factor == item.factor
        is_first = (item.sum, item.tile) not in done
        previous = dataclasses.replace(item, is_first=is_first, reuses=reuses)
        done.add((item.sum, item.tile))
        parts[item.value != INPUT].append(previous)
    return parts


def _weight_products(phase: Phase, block: range, size: int) -> Iterator[Product]:
    """The input first. Plane by plane, so that the planes that the step before finishes last are needed last."""
    values = dict.fromkeys(value for item in phase.sums for value in item.weights)
    for value in sorted(values, key=lambda value: value != INPUT):
        inputs = next(item.weights[value].shape[1] for item in phase.sums if value in item.weights)
        for plane in range(-(-inputs // size)):
            for tile in block:
                for number, item in enumerate(phase.sums):
                    if value in item.weights:
                        yield Product(number, value, plane, tile)


def _factor_products(phase: Phase, block: range) -> Iterator[Product]:
    """Those with one factor after each other, because they share a tile."""
    terms = [
        (factor, number, value) for number, item in enumerate(phase.sums) for value, factor in item.factors.items()
    ]
    for factor, number, value in sorted(terms, key=lambda term: term[0]):
        for tile in block:
            yield Product(number, value, tile, tile, factor)


def tiles(operation: Recurrent, size: int) -> int:
    """Output tiles."""
    return -(-operation.units // size)


def local_values(operation: Recurrent) -> frozenset[str]:
    """Values that are made and used up within one phase: they need a place for one block only."""
    used = [
        {name for step in phase.steps for name in (step.target, step.source, step.operand)}
        for phase in operation.phases
    ]
    multiplied = multiplied_values(operation)
    return frozenset(
        name
        for name in operation.formats
        if sum(name in names for names in used) == 1 and name not in multiplied and name not in operation.carried
    )


def multiplied_values(operation: Recurrent) -> frozenset[str]:
    """Values that the array multiplies."""
    sums = [item for phase in operation.phases for item in phase.sums]
    return frozenset(value for item in sums for value in (*item.weights, *item.factors))


def step_passes(step: Step, operation: Recurrent) -> int:
    """Passes of the activation unit for each result of a step."""
    return operation.formats[step.target].item * (1 if step.operand is None else 2)


def kept_rows(operation: Recurrent, batch: int, size: int) -> dict[str, int]:
    """Unified buffer rows of each value that stays there from execution to execution."""
    return {name: tiles(operation, size) * batch * operation.formats[name].item for name in operation.kept}


def plan_cell(operation: Recurrent, inputs: int, batch: int, available: int, config: Config) -> Layout:
    """Cut a cell with ``inputs`` input channels to fit ``available`` rows of the unified buffer.

    Raises
    ------
    CapacityError
        Not even one image fits, or not the whole batch where values stay in the unified buffer.
    """
    least = None
    for count in range(1, batch + 1):
        images = -(-batch // count)
        for most, slots in itertools.product(_halved(tiles(operation, config.size)), _halved(_INPUT_SLOTS)):
            least = _layout(operation, inputs, images, slots, most, config)
            if least.rows <= available:
                return least
        if operation.kept:
            break
    what = f"a batch of {batch} whose state it keeps" if operation.kept else "one batch element"
    raise CapacityError(
        f"node {operation.name!r}: unified_buffer_rows is {config.unified_buffer_rows}, but {what} needs "
        f"{config.unified_buffer_rows - available + least.rows}",
        operation.name,
    )


def _halved(count: int) -> Iterator[int]:
    """A number, and half of the one before, down to 1."""
    while count > 1:
        yield count
        count //= 2
    yield 1


def _layout(operation: Recurrent, inputs: int, images: int, slots: int, most: int, config: Config) -> Layout:
    parts = _parts(operation, inputs, images, config)
    rows = len(parts[0])
    # Every phase may read the input, one part after the other.
    slots = max(slots, len(parts))
    blocks = tuple(_blocks(phase, operation, rows, len(parts), most, config) for phase in operation.phases)
    planes, count = -(-inputs // config.size), tiles(operation, config.size)
    multiplied = multiplied_values(operation)
    local = local_values(operation)
    places: dict[str, tuple[int, ...]] = {}
    end = 0

    def place(name: str, *sizes: int) -> None:
        nonlocal end
        addresses = []
        for length in sizes:
            addresses.append(end)
            end += length
        places[name] = tuple(addresses)

    place("tables", table_rows(config.size) * len(operation.tables))
    place(INPUT, slots * planes * rows)
    for name, format in operation.formats.items():
        if name in operation.carried:
            length = count * images * format.item
            here = 0 if name in operation.kept else length
            place(name, *([here, length] if name in multiplied else [here]))
        elif name not in local:
            place(name, count * images * format.item)
    # Values of one phase are used up when those of another one are made.
    first, last = end, end
    for phase, parts_of_it in zip(operation.phases, blocks, strict=True):
        end = first
        for name in dict.fromkeys(step.target for step in phase.steps if step.target in local):
            place(name, max(map(len, parts_of_it)) * rows * operation.formats[name].item)
        last = max(last, end)
    end = last
    return Layout(config.size, images, parts, blocks, slots, planes, places, end)


def step_tiles(operation: Recurrent, size: int) -> int:
    """Tiles of weights that a step multiplies by, without those of factors."""
    sums = [item for phase in operation.phases for item in phase.sums]
    shapes = [weights.shape for item in sums for weights in item.weights.values()]
    return sum(-(-units // size) * -(-inputs // size) for units, inputs in shapes)


def step_cycles(operation: Recurrent, inputs: int, images: int, config: Config) -> tuple[int, int]:
    """Cycles of a step in the activation unit, and of its multiplications, whose weights may be what they wait for."""
    count = tiles(operation, config.size)
    passes = sum(step_passes(step, operation) for phase in operation.phases for step in phase.steps)
    sums = [item for phase in operation.phases for item in phase.sums]
    weight_tiles = step_tiles(operation, config.size) + sum(count * len(item.factors) for item in sums)
    return images * count * passes * config.column_groups, weight_tiles * max(images, fetch_cycles(config), config.size)


def _parts(operation: Recurrent, inputs: int, images: int, config: Config) -> tuple[range, ...]:
    """One part, two where taking turns is faster than fetching weights for one only, more where sums do not fit."""
    sums = max(len(phase.sums) for phase in operation.phases)
    # One block is summed up in one half of the accumulators while another one is activated from the other half.
    most = config.accumulator_rows // 2 // sums
    if most < 1:
        raise CapacityError(
            f"node {operation.name!r}: accumulator_rows is {config.accumulator_rows}, but it needs at least {2 * sums}",
            operation.name,
        )
    count = -(-images // most)
    if count == 1 and images > 1:
        half = max(step_cycles(operation, inputs, -(-images // 2), config))
        count = 2 if 2 * half < sum(step_cycles(operation, inputs, images, config)) else 1
    length = -(-images // count)
    return tuple(range(start, min(start + length, images)) for start in range(0, images, length))


def _blocks(phase: Phase, operation: Recurrent, rows: int, parts: int, most: int, config: Config) -> tuple[range, ...]:
    """At most ``most`` output tiles, whose sums fill at most half of the accumulators; and where nothing else overlaps,
    a part of all tiles."""
    count = tiles(operation, config.size)
    length = min(most, max(1, config.accumulator_rows // 2 // (len(phase.sums) * rows)))
    if parts == 1:
        own = {step.source for step in operation.steps if not step.is_uniform}
        fits = count * len(own) <= config.parameter_sets
        length = min(length, -(-count // (_BLOCKS if fits and len(operation.phases) == 1 else 2)))
    return tuple(range(start, min(start + length, count)) for start in range(0, count, length))
