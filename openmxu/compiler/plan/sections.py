"""The order of the work: sections, each of which sums up some output tiles of some rows and activates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.plan.segments import LayerShape, Plan, Segment, fetch_cycles

__all__ = ["Multiplication", "Section", "sections", "startup_rows"]

_STARTUP_ROWS = 16
_STARTUP_PARTS = 8


@dataclass(frozen=True)
class Multiplication:
    """One MatrixMultiply: rows ``start`` up to ``stop`` of a block, a plane of the input, an output tile.

    ``index`` counts the passes over the input from 0.
    """

    index: int
    plane: int
    tile: int
    start: int
    stop: int
    next_tile: bool


@dataclass(frozen=True)
class Section:
    """Rows ``start`` up to ``stop`` of block ``block``, through the output tiles ``tiles`` of layer ``layer``.

    ``startup`` marks the first section of a segment, whose first plane is multiplied in parts while the rest of it is
    still being read.
    """

    layer: int
    block: int
    group: int
    tiles: range
    start: int
    stop: int
    shape: LayerShape
    startup: bool = False

    def multiplications(self) -> Iterator[Multiplication]:
        """In order: for each pass over a plane of the input, each output tile."""
        repeats = self.shape.passes // self.shape.planes
        for index in range(self.shape.passes):
            for tile in self.tiles:
                parts = [(self.start, self.stop)]
                if self.startup and index == 0 and tile == self.tiles[0]:
                    rows = startup_rows(self.stop)
                    parts = [(start, min(start + rows, self.stop)) for start in range(0, self.stop, rows)]
                for number, (start, stop) in enumerate(parts):
                    yield Multiplication(index, index // repeats, tile, start, stop, next_tile=number == 0)


def startup_rows(rows: int) -> int:
    """Rows of one part of the first plane."""
    return max(_STARTUP_ROWS, -(-rows // _STARTUP_PARTS))


def sections(plan: Plan, shapes: Sequence[LayerShape], config: Config) -> list[list[Section]]:
    """Every section of every segment in the order of execution.

    Within a segment, block b of layer l comes in wave b + l: between the end of a block in one layer and its beginning
    in the next one lies other work. The very last tile is done in ever fewer rows, so that little is left to activate
    and to write when the last multiplication ends.
    """
    result = []
    for segment in plan.segments:
        result.append(list(_segment_sections(segment, shapes)))
    segment = plan.segments[-1]
    last = result[-1].pop()
    # Rows of less than a tile's fetch would wait for weights; rows that share a write with other tiles stay together.
    least = max(config.size, fetch_cycles(config)) if segment.write_tiles == 1 else last.stop
    result[-1] += _tapered(last, least)
    return result


def _segment_sections(segment: Segment, shapes: Sequence[LayerShape]) -> Iterator[Section]:
    layers = segment.stop - segment.first
    for wave in range(len(segment.blocks) + layers - 1):
        for offset in range(layers):
            block = wave - offset
            if not 0 <= block < len(segment.blocks):
                continue
            rows = segment.blocks[block][1]
            for group, tiles in enumerate(segment.groups[offset]):
                layer = segment.first + offset
                startup = wave == 0 and group == 0
                yield Section(layer, block, group, tiles, 0, rows, shapes[layer], startup)


def _tapered(section: Section, least: int) -> Iterator[Section]:
    """The same rows in sections of half of what is left, but at least ``least`` rows."""
    start = section.start
    while section.stop - start >= 2 * least:
        stop = start + max(least, (section.stop - start) // 2)
        yield _with_rows(section, start, stop)
        start = stop
    yield _with_rows(section, start, section.stop)


def _with_rows(section: Section, start: int, stop: int) -> Section:
    startup = section.startup and start == 0
    return Section(section.layer, section.block, section.group, section.tiles, start, stop, section.shape, startup)
