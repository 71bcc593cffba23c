"""How a network is cut to fit the memories: segments of layers, blocks of rows, places in the unified buffer.

Rows of a batch are independent, so a *segment* of consecutive layers runs block by block: a block of rows goes through
all of them without leaving the unified buffer. Between segments tensors lie in host memory. A block must have rows
enough that a tile of weights is fetched while the tile before it is in use; that decides where segments end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.compiler.errors import CapacityError

__all__ = ["LayerShape", "Plan", "Segment", "fetch_cycles", "plan_network", "plan_staging"]

_BLOCKS = 8
"""Blocks of a batch that goes through several layers, where it has rows enough: while one block waits for the
activation unit, another one multiplies."""

_WRITE_ROWS = 16
"""Unified buffer rows that one Write_Host_Memory should have, where tiles with fewer rows lie next to each other."""

_LOADS = 8
"""Parameter sets that one load brings."""


@dataclass(frozen=True)
class LayerShape:
    """A layer in tiles: ⌈K/S⌉ input planes, passes over them, ⌈N/S⌉ output tiles, buffer rows of an output row."""

    planes: int
    passes: int
    tiles: int
    output_rows: int


@dataclass(frozen=True)
class Segment:
    """Layers ``first`` up to ``stop``, and how a block of rows passes through them.

    Attributes
    ----------
    blocks
        First row and number of rows of each.
    block_rows
        Rows of the largest block: the distance of planes in the unified buffer.
    slots
        Blocks of each input in the unified buffer at a time.
    ring
        Planes of the input in the unified buffer at a time where it is too large to be there as a whole; 0 where it
        is not. Such an input is read once for each group of output tiles.
    output_slots
        Parts of the output in the unified buffer at a time, each of ``write_tiles`` tiles.
    inputs
        First unified buffer row of each layer's input.
    output
        First unified buffer row of the output.
    groups
        For each layer, the output tiles that are computed side by side.
    """

    first: int
    stop: int
    blocks: tuple[tuple[int, int], ...]
    block_rows: int
    slots: int
    ring: int
    output_slots: int
    write_tiles: int
    inputs: tuple[int, ...]
    output: int
    groups: tuple[tuple[range, ...], ...]


@dataclass(frozen=True)
class Plan:
    """Segments in order, and the place where parameter sets wait to be loaded.

    Attributes
    ----------
    load_sets, staging_slots
        Parameter sets of one load, and how many loads have room at rows from 0 on.
    """

    segments: tuple[Segment, ...]
    load_sets: int
    staging_slots: int


def fetch_cycles(config: Config) -> int:
    """Cycles in which the weight memory delivers one tile."""
    return -(-config.tile_bytes // config.weight_data_bytes)


def plan_network(shapes: Sequence[LayerShape], rows: int, config: Config) -> Plan:
    """Cut a network.

    Parameters
    ----------
    shapes
        Of its layers.
    rows
        M: matrix rows that go through all of them.

    Raises
    ------
    CapacityError
        The unified buffer does not even hold one row of everything that a layer needs at a time.
    """
    load_sets, staging_slots = plan_staging(sum(shape.tiles for shape in shapes), config)
    planner = _Planner(shapes, rows, config, load_sets * staging_slots * PARAMETER_ROWS)
    return Plan(planner.segments(), load_sets, staging_slots)


def plan_staging(tiles: int, config: Config) -> tuple[int, int]:
    """Parameter sets of one load and the number of loads in the unified buffer: at most an eighth of it."""
    room = config.unified_buffer_rows // 8 // PARAMETER_ROWS
    sets = max(1, min(tiles, _LOADS, room // 2, config.parameter_sets // 2))
    return sets, 2 if room >= 2 * sets and tiles > sets else 1


@dataclass(frozen=True)
class _Planner:
    shapes: Sequence[LayerShape]
    rows: int
    config: Config
    staging: int

    @property
    def available(self) -> int:
        """Unified buffer rows that are not for parameters."""
        return self.config.unified_buffer_rows - self.staging

    @property
    def wanted(self) -> int:
        """Rows that hide the fetch of a tile and its way into the array."""
        return min(self.rows, max(2 * self.config.size, fetch_cycles(self.config)))

    def segments(self) -> tuple[Segment, ...]:
        """As few segments as leave every block rows enough."""
        segments = []
        first = 0
        while first < len(self.shapes):
            best = self._single(first)
            for stop in range(first + 2, len(self.shapes) + 1):
                longer = self._resident(first, stop)
                if longer is None or longer.block_rows < min(self.wanted, best.block_rows):
                    break
                best = longer
            segments.append(best)
            first = best.stop
        return tuple(segments)

    def _single(self, layer: int) -> Segment:
        """One layer: its input in the unified buffer, or plane by plane where that allows larger blocks."""
        resident = self._resident(layer, layer + 1)
        if resident is not None and resident.block_rows >= self.wanted:
            return resident
        streaming = self._streaming(layer)
        if streaming is None:
            needed = self.staging + 1 + self.shapes[layer].output_rows
            raise CapacityError(
                f"unified_buffer_rows is {self.config.unified_buffer_rows}, but the model needs at least {needed}"
            )
        if resident is not None and resident.block_rows >= streaming.block_rows:
            return resident
        return streaming

    def _group_size(self, shape: LayerShape) -> int:
        """Output tiles side by side, so that reading a plane takes no longer than multiplying it."""
        config = self.config
        balanced = -(-config.size // config.host_data_bytes)
        if shape.passes >= 2 * config.column_groups:
            # The activation unit can catch up later, so one tile more hides what reading loses between planes.
            balanced += 1
        room = config.accumulator_rows // max(fetch_cycles(config), 2 * config.size) - 1
        return min(balanced, shape.tiles, max(1, room))

    def _resident(self, first: int, stop: int) -> Segment | None:
        shapes = self.shapes[first:stop]
        size = self._group_size(shapes[0])
        # One group is summed up while another is activated.
        limit = self.config.accumulator_rows // (size + 1)
        if len(shapes) > 1:
            limit = min(limit, max(2 * self.wanted, -(-self.rows // _BLOCKS)))
        planes = sum(shape.planes for shape in shapes)
        output = shapes[-1].output_rows
        if self.rows <= limit and self.rows * (planes + 2 * output) <= self.available:
            slots, block_rows = 1, self.rows
        else:
            slots, block_rows = 2, min(limit, self.rows, self.available // (2 * planes + 2 * output))
        if block_rows < 1:
            return None
        groups = [_groups(shapes[0].tiles, size, 1), *(_groups(shape.tiles, 1, 1) for shape in shapes[1:])]
        return self._place(first, stop, block_rows, slots, 0, 2, tuple(groups))

    def _streaming(self, layer: int) -> Segment | None:
        shape = self.shapes[layer]
        size = self._group_size(shape)
        depth = self.config.command_queue_depth + 2
        for ring, output_slots in ((depth, 2), (2, 2), (1, 1)):
            limit = self.config.accumulator_rows // (2 * size)
            block_rows = min(limit, self.rows, self.available // (ring + output_slots * shape.output_rows))
            if block_rows >= 1:
                groups = (_groups(shape.tiles, size, size),)
                return self._place(layer, layer + 1, block_rows, 1, ring, output_slots, groups)
        return None

    def _place(
        self,
        first: int,
        stop: int,
        block_rows: int,
        slots: int,
        ring: int,
        output_slots: int,
        groups: tuple[tuple[range, ...], ...],
    ) -> Segment:
        count = -(-self.rows // block_rows)
        block_rows = -(-self.rows // count)
        blocks = tuple((start, min(block_rows, self.rows - start)) for start in range(0, self.rows, block_rows))
        address = self.staging
        inputs = []
        for shape in self.shapes[first:stop]:
            inputs.append(address)
            address += block_rows * (ring or slots * shape.planes)
        output_rows = block_rows * self.shapes[stop - 1].output_rows
        write_tiles = 1
        if len(blocks) == 1:
            room = (self.config.unified_buffer_rows - address) // (output_slots * output_rows)
            write_tiles = max(1, min(_WRITE_ROWS // output_rows, room, self.shapes[stop - 1].tiles))
        return Segment(
            first, stop, blocks, block_rows, slots, ring, output_slots, write_tiles, tuple(inputs), address, groups
        )


def _groups(tiles: int, first: int, others: int) -> tuple[range, ...]:
    """Output tiles in groups, the first one of another size than the others."""
    groups = [range(first)]
    while groups[-1].stop < tiles:
        start = groups[-1].stop
        groups.append(range(start, min(start + others, tiles)))
    return tuple(groups)
