"""The drawing of a recorded array: places for numbers, and what stands there from cycle to cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from openmxu.sim.array_recording import ArrayRecording

__all__ = ["Box", "Drawing", "Label", "Run", "Slot"]

_CELL = 64
_REGISTER_WIDTH = 30
_REGISTER_HEIGHT = 18
_RESULT_HEIGHT = 20
_MARGIN = 10
_TOP = 24
_GAP = 30
_LABEL_WIDTH = 76
"""Room to the left of the array for the names of rows."""

_HEADING_WIDTH = 180
"""Room for the names of parts, which may be wider than a small array."""

_ACTIVATION = (16, 37)
_WEIGHT = (47, 37)
_NEXT_WEIGHT = (47, 16)
_SUM = (32, 57)
"""Middle of the base line of each number within an element."""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Label:
    """Text that stays."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass(frozen=True)
class Run:
    """What a slot shows from one cycle up to, but not including, another one; ``tile`` is the tile it belongs to."""

    start: int
    stop: int
    text: str
    tile: int


@dataclass(frozen=True)
class Slot:
    """A place for a number.

    Attributes
    ----------
    kind
        ``activation``, ``weight``, ``next``, ``sum`` or ``result``.
    x, y
        Middle of the text's base line.
    move
        From where a number comes in the cycle in which it appears, as a distance from its place.
    box
        Takes the colour of the number's tile.
    runs
        In ascending order; nothing is shown between them.
    """

    kind: str
    x: float
    y: float
    move: tuple[float, float]
    box: Box | None
    runs: tuple[Run, ...]


class Drawing:
    """The array with the skew registers of activations to its left, those of weights above it, and its sums below.

    Lengths are in pixels of a drawing ``width`` × ``height``. Only what belongs to the product is shown: lanes without
    a row are empty, and so is a next weight from the cycle on in which it is in use.

    Parameters
    ----------
    recording
        The product.
    """

    def __init__(self, recording: ArrayRecording) -> None:
        self._recording = recording
        size = recording.size
        self._left = _MARGIN + max(size * _REGISTER_WIDTH, _LABEL_WIDTH)
        self._top = _TOP + size * _REGISTER_HEIGHT
        self._results = self._top + size * _CELL + _GAP
        self._result_rows = len(recording.left) * (int(recording.blocks[-1]) + 1)
        self.cycles = recording.cycles
        self.width = self._left + max(size * _CELL, _HEADING_WIDTH) + _MARGIN
        self.height = self._results + self._result_rows * _RESULT_HEIGHT + _MARGIN
        # Tiles in use and next tiles, (C, S, S); each shifts S - k weights through row k of the array.
        self._tiles = np.cumsum(recording.swapped, axis=0) - 1
        self._shifts = np.cumsum(recording.shifted, axis=0) - 1
        self._next_tiles = self._shifts // (size - np.arange(size))[:, None]

    @property
    def elements(self) -> list[Box]:
        """The outlines of the elements."""
        places = np.ndindex(self._recording.size, self._recording.size)
        return [Box(self._left + column * _CELL, self._top + row * _CELL, _CELL, _CELL) for row, column in places]

    @property
    def registers(self) -> list[Box]:
        """The outlines of the skew registers."""
        size = self._recording.size
        width, height = _REGISTER_WIDTH, _REGISTER_HEIGHT
        places = [(lane, stage) for lane in range(size) for stage in range(lane + 1)]
        return [
            *(
                Box(self._left - (stage + 1) * width, self._top + lane * _CELL + _ACTIVATION[1] - 14, width, height)
                for lane, stage in places
            ),
            *(
                Box(
                    self._left + lane * _CELL + _NEXT_WEIGHT[0] - width / 2,
                    self._top - (stage + 1) * height,
                    width,
                    height,
                )
                for lane, stage in places
            ),
        ]

    @property
    def sums(self) -> list[Box]:
        """The outlines of the sums below the array."""
        return [
            self._result_box(row, column)
            for row in range(self._result_rows)
            for column in range(self._recording.size)
            if self._is_result(row, column)
        ]

    @property
    def labels(self) -> list[Label]:
        """The names of parts, and the signs between the factors."""
        rows = len(self._recording.left)
        several = self._result_rows > rows
        size = self._recording.size
        return [
            Label(self._left, self._top - size * _REGISTER_HEIGHT - 8, "weights of the next tile ↓"),
            Label(_MARGIN, self._top - 8, "activations →"),
            Label(self._left, self._results - 9, "sums that have left, added up ↓"),
            *(
                Label(
                    self._left - 8,
                    self._results + row * _RESULT_HEIGHT + 14,
                    f"row {row % rows}" + (f", block {row // rows}" if several else ""),
                    "end",
                )
                for row in range(self._result_rows)
            ),
            *(Label(box.x + 31, box.y + _WEIGHT[1], "×", "middle") for box in self.elements),
        ]

    @property
    def slots(self) -> list[Slot]:
        """All places for numbers."""
        return [*self._element_slots(), *self._register_slots(), *self._result_slots()]

    @property
    def captions(self) -> list[str]:
        """For each cycle what enters and what leaves."""
        recording, rows = self._recording, len(self._recording.left)
        last = int(np.max(np.flatnonzero(recording.entering >= 0)))
        texts = []
        for cycle, number in enumerate(recording.entering):
            if number >= 0:
                enters = f"row {number % rows} enters for tile {number // rows}"
            else:
                enters = "all rows have entered" if cycle > last else "a tile is being loaded"
            leaving = sorted({f"{number % rows}" for number in recording.sum_rows[cycle, -1] if number >= 0}, key=int)
            texts.append(f"{enters}; " + (_rows_leave(leaving) if leaving else "no sums leave"))
        return texts

    def _element_slots(self) -> Iterator[Slot]:
        recording = self._recording
        rows, sum_rows, height = recording.rows, recording.sum_rows, len(recording.left)
        for row, column in np.ndindex(recording.size, recording.size):
            here = (slice(None), row, column)
            x, y = self._left + column * _CELL, self._top + row * _CELL
            tile, next_tile = self._tiles[here], self._next_tiles[here]
            next_keys = np.where(next_tile > tile, self._shifts[here], -1)
            chip = Box(x + _NEXT_WEIGHT[0] - 15, y + 3, 30, 17)
            element = Box(x, y, _CELL, _CELL)
            from_edge = _ACTIVATION[0] + _REGISTER_WIDTH / 2
            yield Slot(
                "weight",
                *(x + _WEIGHT[0], y + _WEIGHT[1]),
                (0, _NEXT_WEIGHT[1] - _WEIGHT[1]),
                element,
                _runs(tile, recording.weights[here], tile),
            )
            yield Slot(
                "next",
                *(x + _NEXT_WEIGHT[0], y + _NEXT_WEIGHT[1]),
                (0, -_CELL if row else -_REGISTER_HEIGHT),
                chip,
                _runs(next_keys, recording.next_weights[here], next_tile),
            )
            yield Slot(
                "activation",
                *(x + _ACTIVATION[0], y + _ACTIVATION[1]),
                (-_CELL if column else -from_edge, 0),
                None,
                _runs(rows[here], recording.activations[here], rows[here] // height),
            )
            yield Slot(
                "sum",
                *(x + _SUM[0], y + _SUM[1]),
                (0, -_CELL if row else _WEIGHT[1] - _SUM[1]),
                None,
                _runs(sum_rows[here], recording.partial_sums[here], sum_rows[here] // height),
            )

    def _register_slots(self) -> Iterator[Slot]:
        """Stage 0 is at the edge; what is in another one reaches the edge so many cycles later."""
        recording = self._recording
        for lane in range(recording.size):
            rows = _shifted(recording.entering, -lane)
            # A weight at the edge of column n is in element (0, n) in the next cycle.
            entered = _shifted(np.where(recording.shifted[:, 0, lane], self._shifts[:, 0, lane], -1), 1)
            tiles = _shifted(self._next_tiles[:, 0, lane], 1)
            for stage in range(lane + 1):
                yield Slot(
                    "activation",
                    self._left - (stage + 0.5) * _REGISTER_WIDTH,
                    self._top + lane * _CELL + _ACTIVATION[1],
                    (-_REGISTER_WIDTH, 0),
                    None,
                    _runs(
                        _shifted(rows, stage),
                        _shifted(recording.edge_activations[:, lane], stage),
                        _shifted(rows, stage) // len(recording.left),
                    ),
                )
                yield Slot(
                    "next",
                    self._left + lane * _CELL + _NEXT_WEIGHT[0],
                    self._top - stage * _REGISTER_HEIGHT - 5,
                    (0, -_REGISTER_HEIGHT),
                    None,
                    _runs(
                        _shifted(entered, stage),
                        _shifted(recording.edge_weights[:, lane], stage),
                        _shifted(tiles, stage),
                    ),
                )

    def _result_slots(self) -> Iterator[Slot]:
        """A sum is below the array in the cycle after that in which it is in the last row of elements."""
        recording = self._recording
        height = len(recording.left)
        leaving = recording.sum_rows[:, -1]
        passes = leaving // height
        for row in range(self._result_rows):
            block, number = divmod(row, height)
            for column in range(recording.size):
                if not self._is_result(row, column):
                    continue
                is_here = (leaving[:, column] % height == number) & (leaving[:, column] >= 0)
                is_here &= recording.blocks[passes[:, column]] == block
                total = np.cumsum(np.where(is_here, recording.partial_sums[:, -1, column], 0))
                tiles = np.maximum.accumulate(np.where(is_here, passes[:, column], -1))
                box = self._result_box(row, column)
                yield Slot(
                    "result",
                    *(box.x + _CELL / 2, box.y + 14),
                    (0, -_RESULT_HEIGHT),
                    box,
                    _runs(_shifted(tiles, -1), _shifted(total, -1), _shifted(tiles, -1)),
                )

    def _is_result(self, row: int, column: int) -> bool:
        """Whether there is such a sum: the last block may have fewer columns."""
        block = row // len(self._recording.left)
        return block * self._recording.size + column < self._recording.right.shape[1]

    def _result_box(self, row: int, column: int) -> Box:
        return Box(self._left + column * _CELL, self._results + row * _RESULT_HEIGHT, _CELL, _RESULT_HEIGHT)


def _rows_leave(rows: list[str]) -> str:
    return f"sums of row{'s' if len(rows) > 1 else ''} {', '.join(rows)} leave"


def _shifted(values: NDArray[np.int64], cycles: int) -> NDArray[np.int64]:
    """What comes so many cycles later, or has come so many cycles ago if negative; -1 where nothing is known."""
    result = np.full_like(values, -1)
    if cycles >= 0:
        result[: len(values) - cycles] = values[cycles:]
    else:
        result[-cycles:] = values[:cycles]
    return result


def _runs(keys: NDArray[np.int64], values: NDArray[np.int64], tiles: NDArray[np.int64]) -> tuple[Run, ...]:
    """A run for each stretch of cycles with the same key; a negative key shows nothing."""
    starts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist()]
    stops = [*starts[1:], len(keys)]
    return tuple(
        Run(start, stop, str(values[start]).replace("-", "−"), int(tiles[start]))
        for start, stop in zip(starts, stops, strict=True)
        if keys[start] >= 0
    )
