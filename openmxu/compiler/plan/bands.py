"""Bands: the outputs of a convolution whose sums are in the accumulators at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.buffers import Region
from openmxu.compiler.plan.segments import fetch_cycles

__all__ = ["Piece", "bands"]


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


def bands(
    operation: Convolution, strip: Region, plane: tuple[int, int], config: Config, *, ramp: bool, taper: bool
) -> list[tuple[Piece, ...]]:
    """Cut what a convolution makes in a strip.

    A band is as large as half of the accumulators: one is summed up while another is activated. At the beginning and
    the end of a program, bands grow from and shrink to what just hides the fetch of weights: with ``ramp``, computing
    begins when little of the input is there; with ``taper``, little is left to activate and to write when the last sum
    is done.

    Parameters
    ----------
    plane
        Height and width of the sums, before pooling.
    """
    limit = config.accumulator_rows // 2
    units = list(_units(operation.pooling, strip, plane, limit))
    total = sum(unit.positions for unit in units)
    targets = _sizes(total, limit, config.size + fetch_cycles(config), ramp, taper)
    result: list[list[Piece]] = [[]]
    wanted = next(targets)
    filled = 0
    for unit in units:
        if result[-1] and (filled >= wanted or _positions(_joined([*result[-1], unit], operation, plane)) > limit):
            result.append([])
            wanted, filled = next(targets, limit), 0
        result[-1] = _joined([*result[-1], unit], operation, plane)
        filled = _positions(result[-1])
    return [tuple(pieces) for pieces in result]


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


def _sizes(total: int, limit: int, least: int, ramp: bool, taper: bool) -> Iterator[int]:
    """Sizes of bands in positions; they are reached by whole rows, not exactly."""
    head: list[int] = []
    tail: list[int] = []
    for wanted, part in ((ramp, head), (taper, tail)):
        size = least
        while wanted and 2 * size < limit and sum(head) + sum(tail) + 2 * size <= total:
            part.append(size)
            size *= 2
    middle = total - sum(head) - sum(tail)
    count = max(1, -(-middle // limit))
    yield from head
    yield from [-(-middle // count)] * count
    yield from reversed(tail)
