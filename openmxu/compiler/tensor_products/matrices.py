"""Matrices that lie in a tensor, as the heads of attention do."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Matrices"]


@dataclass(frozen=True)
class Matrices:
    """Matrices of one shape: row r of matrix g is at position ``positions[g]`` + r, column c in ``channels[g]`` + c.

    ``channels`` are the first channel of each, ``positions`` the first position in a plane.
    """

    positions: tuple[int, ...]
    channels: tuple[int, ...]

    @classmethod
    def find(cls, numbers: NDArray[np.int64], channels: int) -> Matrices | None:
        """Where elements lie that are numbered position by position, in each of them channel by channel.

        Parameters
        ----------
        numbers
            (matrices, rows, columns).
        channels
            Of the tensor.

        Returns
        -------
        ``None`` where they do not lie like this.
        """
        position, channel = np.divmod(numbers, channels)
        first_position, first_channel = position[:, :1, :1], channel[:, :1, :1]
        rows, columns = np.arange(numbers.shape[1])[:, np.newaxis], np.arange(numbers.shape[2])
        if (position != first_position + rows).any() or (channel != first_channel + columns).any():
            return None
        return cls(tuple(first_position[:, 0, 0].tolist()), tuple(first_channel[:, 0, 0].tolist()))

    def take(self, rows: int, columns: int, values: NDArray[Any]) -> NDArray[Any]:
        """The matrices, (batch, matrices, rows, columns), of a tensor (batch, positions, channels)."""
        parts = [
            values[:, position : position + rows, channel : channel + columns]
            for position, channel in zip(self.positions, self.channels, strict=True)
        ]
        return np.stack(parts, axis=1)

    def put(self, values: NDArray[Any], target: NDArray[Any]) -> None:
        """Undo :meth:`take`."""
        for index, (position, channel) in enumerate(zip(self.positions, self.channels, strict=True)):
            rows, columns = values.shape[2:]
            target[:, position : position + rows, channel : channel + columns] = values[:, index]

    def fits_planes(self, columns: int, size: int) -> bool:
        """Whether every matrix has planes of ``size`` channels of its own."""
        own = [range(first, first + columns) for first in sorted(set(self.channels))]
        apart = all(before.stop <= after.start for before, after in itertools.pairwise(own))
        return apart and all(first % size == 0 for first in self.channels)
