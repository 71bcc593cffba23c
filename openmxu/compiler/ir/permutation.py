"""Bytes of tensors in another order, as an operation of the device.

The activation unit copies rows, and nothing else moves bytes from lane to lane but the array: a weight of 1 from lane k
to lane n brings byte k of an input row to column n, exactly. So an output row is the sum of as many products as there
are input rows that it takes bytes from, each by a *selection*, a tile of zeros and ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Operation

__all__ = ["FILL", "Permutation", "Pick", "Selections", "TargetPlane"]

_MOST_RUNS = 1 << 15
"""Programs that are any longer are no way to move bytes."""

FILL = -1
"""Stands for an element that comes from nowhere."""


@dataclass(frozen=True, kw_only=True)
class Permutation(Operation):
    """Every element of the target is one of the sources', or ``fill``.

    Attributes
    ----------
    index : int64 array, (height, width, channels)
        For each element of the target the number of its source, :data:`FILL` for none. The elements of a source are
        numbered position by position, in each of them channel by channel; those of one source follow those of the one
        before it.
    input_signed
        How the bytes are read.
    """

    index: NDArray[np.int64]
    input_signed: bool
    fill: int = 0

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        batch = len(inputs[0])
        elements = [x.reshape(batch, -1) for x in inputs]
        elements.append(np.full((batch, 1), self.fill, np.int32))  # number -1
        return self.result.apply(np.concatenate(elements, axis=1)[:, self.index] - np.int32(self.fill), signed)

    def needs(self, name: str, tensors: Mapping[str, Tensor], rows: range, columns: range) -> tuple[range, range]:
        """The rows and columns of a source that some rows and columns of the target need: one of each at least."""
        counts = [tensors[source].positions * tensors[source].channels for source in self.sources]
        number = self.sources.index(name)
        first = sum(counts[:number])
        part = self.index[rows.start : rows.stop, columns.start : columns.stop]
        elements = part[(part >= first) & (part < first + counts[number])] - first
        if elements.size == 0:
            return range(1), range(1)
        y, x = np.divmod(elements // tensors[name].channels, tensors[name].width)
        return range(int(y.min()), int(y.max()) + 1), range(int(x.min()), int(x.max()) + 1)


@dataclass(frozen=True)
class Pick:
    """For some positions of the target, all in one plane: a row of the sources each, and the selection to apply.

    Attributes
    ----------
    selections : int64 array, (n,)
        Numbers of selections.
    targets, sources, planes, positions : int64 arrays, (n,)
        Position in the target; number of a source, plane and position in it.
    """

    selections: NDArray[np.int64]
    targets: NDArray[np.int64]
    sources: NDArray[np.int64]
    planes: NDArray[np.int64]
    positions: NDArray[np.int64]

    @property
    def runs(self) -> int:
        """Roughly, how many instructions it takes: one for neighbours that are picked alike, equally far apart."""
        kinds = np.stack([self.selections, self.sources, self.planes, self.targets - np.arange(len(self.targets))])
        steps = np.diff(self.positions)
        is_other = (np.diff(kinds, axis=1) != 0).any(axis=0)
        # Two changes of the step for each of them: to the next one, and back again.
        return 1 + int(is_other.sum()) + int((np.diff(steps[~is_other]) != 0).sum()) // 2


@dataclass(frozen=True)
class TargetPlane:
    """A plane of the target: its rows are the sums of ``picks``.

    ``copies`` is the number of the selection that leaves all bytes in their lanes, ``None`` where there is none.
    """

    picks: tuple[Pick, ...]
    copies: int | None


class Selections:
    """How a permutation is put together of selections, for planes of ``size`` lanes.

    Raises
    ------
    CapacityError
        So much goes to and fro that it takes too many instructions.
    """

    def __init__(self, operation: Permutation, tensors: Mapping[str, Tensor], size: int) -> None:
        self._size = size
        self._numbers: dict[bytes, int] = {}
        self._tiles: list[NDArray[np.uint8]] = []
        sources = [tensors[name] for name in operation.sources]
        index = operation.index.reshape(-1, operation.index.shape[-1])
        self.planes = tuple(
            self._plane(index[:, start : start + size], sources) for start in range(0, index.shape[1], size)
        )
        if sum(pick.runs for plane in self.planes for pick in plane.picks) > _MOST_RUNS:
            raise CapacityError(
                f"node {operation.name!r}: it takes more than {_MOST_RUNS:,} instructions to move its bytes; a tensor "
                "whose channels stay together takes few",
                operation.name,
            )

    def bytes(self) -> Sequence[NDArray[np.uint8]]:
        """The selections as weight tiles, (S, S) bytes each, without zero point."""
        return self._tiles

    def _plane(self, index: NDArray[np.int64], sources: Sequence[Tensor]) -> TargetPlane:
        """One plane; ``index`` is (positions, lanes)."""
        counts = [source.positions * source.channels for source in sources]
        firsts = np.concatenate([[0], np.cumsum(counts)])
        source = np.clip(np.searchsorted(firsts, index, side="right") - 1, 0, len(sources) - 1)
        position, channel = np.divmod(index - firsts[source], np.array([item.channels for item in sources])[source])
        plane, lane = np.divmod(channel, self._size)
        rows = np.stack([source, plane, position], axis=-1)
        waiting = index != FILL
        nowhere = np.flatnonzero(~waiting.any(axis=1))
        picks = []
        for first in range(index.shape[1]):
            chosen = np.flatnonzero(waiting[:, first])
            if chosen.size:
                picks.append(self._pick(chosen, first, rows, lane, waiting))
        if nowhere.size:
            none = np.zeros_like(nowhere)
            picks.append(Pick(none + self._number(np.full(index.shape[1], FILL)), nowhere, none, none, none))
        return TargetPlane(tuple(picks), self._numbers.get(self._tile(np.arange(index.shape[1])).tobytes()))

    def _pick(
        self,
        chosen: NDArray[np.int64],
        first: int,
        rows: NDArray[np.int64],
        lane: NDArray[np.int64],
        waiting: NDArray[np.bool_],
    ) -> Pick:
        """What lane ``first`` of the ``chosen`` positions is picked from, for all lanes that come from the same row."""
        own = rows[chosen]
        same = (own == own[:, first : first + 1]).all(axis=-1) & waiting[chosen]
        waiting[chosen] &= ~same
        patterns, which = np.unique(np.where(same, lane[chosen], FILL), axis=0, return_inverse=True)
        numbers = np.array([self._number(pattern) for pattern in patterns])
        source, plane, position = own[:, first].T
        return Pick(numbers[which.reshape(-1)], chosen, source, plane, position)

    def _number(self, pattern: NDArray[np.int64]) -> int:
        """The selection that brings lane ``pattern[n]`` to lane n, or nothing where that is :data:`FILL`."""
        tile = self._tile(pattern)
        number = self._numbers.setdefault(tile.tobytes(), len(self._tiles))
        if number == len(self._tiles):
            self._tiles.append(tile)
        return number

    def _tile(self, pattern: NDArray[np.int64]) -> NDArray[np.uint8]:
        tile = np.zeros((self._size, self._size), np.uint8)
        used = np.flatnonzero(pattern != FILL)
        tile[pattern[used], used] = 1
        return tile
