"""Bands: the outputs of a convolution whose sums are in the accumulators at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.emit.tiles import KernelTiles
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.buffers import Region
from openmxu.compiler.plan.ramp import Ramp
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles

__all__ = ["Piece", "Section", "bands", "sections"]


_IMAGE_ROWS = 64
"""Sums of an image that are enough for a band."""

_STARTUP_ROWS = 16
_STARTUP_PARTS = 8
_DISPATCH_CYCLES = 10
"""For an instruction of the array and what comes with it."""


@dataclass(frozen=True)
class Piece:
    """Sums of one image: rows and columns of them, and of what is left of them after pooling."""

    image: int
    rows: range
    columns: range
    target_rows: range
    target_columns: range

    @property
    def positions(self) -> int:
        """Accumulator rows."""
        return len(self.rows) * len(self.columns)

    @property
    def results(self) -> int:
        """Rows of the target."""
        return len(self.target_rows) * len(self.target_columns)


@dataclass(frozen=True)
class Section:
    """Output tiles ``tiles`` of some pieces, which are summed up side by side.

    ``startup`` pieces are multiplied at a time by the very first tile, while the others are still being read; 0 for
    all of them. So are ``chunk`` pieces by every tile with which rows are read or sums end, and activated and written.
    ``parameters_first`` where loads of parameters take so long that they should begin at once. ``planes`` planes of the
    input are read at a time.
    """

    pieces: tuple[Piece, ...]
    tiles: range
    startup: int = 0
    parameters_first: bool = False
    chunk: int = 0
    planes: int = 1


def bands(
    operation: Convolution,
    strip: Region,
    plane: tuple[int, int],
    config: Config,
    *,
    ramp: bool,
    taper: bool,
    parts: int = 2,
) -> list[tuple[Piece, ...]]:
    """Cut what a convolution makes in a strip.

    A band is as large as half of the accumulators: one is summed up while another is activated. At the beginning and
    the end of a program, bands grow from and shrink to what just hides the fetch of weights: with ``ramp``, computing
    begins when little of the input is there; with ``taper``, little is left to activate and to write when the last sum
    is done. A band is of one image, where that has sums enough: what follows can go on with the image when it is done.

    Parameters
    ----------
    plane
        Height and width of the sums, before pooling.
    """
    limit = max(1, config.accumulator_rows // parts)
    units = list(_units(operation.pooling, strip, plane, limit))
    left = sum(unit.positions for unit in units)
    alone = left >= len(strip.images) * max(_IMAGE_ROWS, 2 * config.size, 2 * fetch_cycles(config))
    images = len(strip.images) if alone else 1
    sizes = _Sizes.of(left, images, limit, max(unit.positions for unit in units), config, ramp, taper)
    result: list[list[Piece]] = []
    wanted = 0
    for unit in units:
        is_full = not result or _positions(result[-1]) >= wanted or (alone and unit.image != result[-1][-1].image)
        if is_full or _positions(_joined([*result[-1], unit], operation, plane)) > limit:
            result.append([])
            wanted = sizes.following(left)
        result[-1] = _joined([*result[-1], unit], operation, plane)
        left -= unit.positions
    return [tuple(pieces) for pieces in result]


def sections(
    operation: Convolution,
    strip: Region,
    plane: tuple[int, int],
    tiles: KernelTiles,
    config: Config,
    ramp: Ramp,
    *,
    is_first: bool,
    is_last: bool,
) -> list[Section]:
    """Every group of output tiles of every band.

    Parameters
    ----------
    is_first, is_last
        Whether the array does nothing before this strip, or nothing behind it.
    """
    startup, halves = is_first and ramp.startup, is_last and ramp.halves
    # One group is summed up while another is activated.
    shares = tiles.together + 1
    if plane == (1, 1) and tiles.count() < config.column_groups * tiles.tiles:
        shares = 3
    parts = bands(
        operation,
        strip,
        plane,
        config,
        ramp=is_first and not startup,
        taper=is_last and not halves,
        parts=shares * ramp.split,
    )
    chunk = ramp.chunk if is_first and is_last else 0
    groups = [tiles.groups] * len(parts)
    if is_last and tiles.apart and len(parts) > 1:
        groups[-1] = tiles.singles
    planes = ramp.planes if is_first else 1
    result = [
        Section(pieces, group, chunk=chunk, planes=planes)
        for pieces, own in zip(parts, groups, strict=True)
        for group in own
    ]
    if is_first:
        first = result[0]
        rows = max(_STARTUP_ROWS, -(-len(first.pieces) // _STARTUP_PARTS)) if startup else 0
        result[0] = dataclasses.replace(first, startup=rows, parameters_first=ramp.parameters_first)
    if is_last and ramp.tail:
        result[-1] = dataclasses.replace(result[-1], chunk=ramp.tail)
    if halves:
        result += _tapered(result.pop(), len(list(tiles.steps(groups[-1][-1]))), config)
    return result


def _tapered(section: Section, steps: int, config: Config) -> Iterator[Section]:
    """The same rows in sections of half of what is left, as long as dispatch keeps up with ever shorter products."""
    start, stop, least = 0, len(section.pieces), max(config.size, fetch_cycles(config))
    while start < stop:
        count = (stop - start) // 2
        saved = count * (config.column_groups + row_cycles(config))
        lost = 2 * steps * max(0, _DISPATCH_CYCLES - count)
        if count < least or saved < lost:
            count = stop - start
        pieces = section.pieces[start : start + count]
        own = section if start == 0 else dataclasses.replace(section, startup=0, parameters_first=False)
        yield dataclasses.replace(own, pieces=pieces)
        start += count


def _units(pooling: Window | None, strip: Region, plane: tuple[int, int], limit: int) -> Iterator[Piece]:
    """The smallest pieces: one row of the target, or parts of one that is wider than the accumulators."""
    for image in strip.images:
        for row in strip.rows:
            rows = range(row, row + 1)
            if pooling is not None:
                columns = pooling.columns(strip.columns, plane[1])
                yield Piece(image, pooling.rows(rows, plane[0]), columns, rows, strip.columns)
                continue
            for start in range(strip.columns.start, strip.columns.stop, limit):
                columns = range(start, min(start + limit, strip.columns.stop))
                yield Piece(image, rows, columns, rows, columns)


def _joined(pieces: list[Piece], operation: Convolution, plane: tuple[int, int]) -> list[Piece]:
    """Pieces with the last one made part of the one before it where they are neighbours."""
    if len(pieces) < 2:
        return pieces
    *others, first, second = pieces
    if first.image != second.image or first.columns != second.columns:
        return pieces
    target_rows = range(first.target_rows.start, second.target_rows.stop)
    rows = target_rows if operation.pooling is None else operation.pooling.rows(target_rows, plane[0])
    return [*others, Piece(first.image, rows, first.columns, target_rows, first.target_columns)]


def _positions(pieces: list[Piece]) -> int:
    return sum(piece.positions for piece in pieces)


@dataclass
class _Sizes:
    """Sizes of bands in positions.

    ``head`` and ``tail`` are those of bands at the beginning and at the end that are still to come, the smallest first;
    ``middle`` that of the others. As few of these as have room are alike in each image: a band of what full ones leave
    may be so small that the next one waits for its weights.
    """

    head: list[int]
    middle: int
    tail: list[int]

    @classmethod
    def of(cls, total: int, images: int, limit: int, unit: int, config: Config, ramp: bool, taper: bool) -> _Sizes:
        """Sizes of at most ``limit`` for so many positions of all images."""
        head: list[int] = []
        tail: list[int] = []
        for wanted, part in ((ramp, head), (taper, tail)):
            size = config.size + fetch_cycles(config)
            while wanted and 2 * size < limit and sum(head) + sum(tail) + 2 * size <= total:
                part.append(-(-size // unit) * unit)
                size *= 2
        left = total if images > 1 else max(1, total - sum(head) - sum(tail))
        units = -(-left // (images * unit))
        count = -(-units // max(1, limit // unit))
        return cls(head, -(-units // count) * unit, tail)

    def following(self, left: int) -> int:
        """The size of the next band, where so many positions are left."""
        if self.head:
            return self.head.pop(0)
        return self.tail.pop() if left <= sum(self.tail) else self.middle
