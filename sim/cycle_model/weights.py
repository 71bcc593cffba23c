"""The way of weights: fetcher, FIFO, and the shift into the array."""

from __future__ import annotations

from bisect import bisect_right

from openmxu.arch.config import Config
from openmxu.sim.cycle_model.latencies import Latencies

__all__ = ["Weights"]

_QUEUED = 4
"""Cycles from the hand-over of a Read_Weights to its first request."""


class Weights:
    """When each tile is where, in the order in which they are queued.

    A tile is asked for when the FIFO has room for all of it; it leaves with the last of its rows. It begins to shift
    into the array when it has come and the tile before is taken, and can be taken with its last row.
    """

    def __init__(self, config: Config, latencies: Latencies) -> None:
        self._config = config
        self._latency = latencies.read
        self._fetch = config.size * max(1, config.size // config.weight_data_bytes)
        # For each Read_Weights the number of tiles up to its end; for each tile the cycle from which on it may be asked
        # for, in which it is asked for, is in the FIFO, begins to shift, and is taken.
        self._ends: list[int] = []
        self._queued: list[int] = []
        self._asked: list[int] = []
        self._arrived: list[int] = []
        self._shifts: list[int] = []
        self._taken: list[int] = []

    def queue(self, tiles: int, cycle: int) -> None:
        """A Read_Weights is handed over."""
        self._queued += [cycle + _QUEUED] * tiles
        self._ends.append(len(self._queued))

    def room(self) -> int:
        """The cycle from which on the fetcher's queue takes a Read_Weights."""
        waiting = len(self._ends) - self._config.weight_queue_depth
        if waiting < 0:
            return 0
        last = self._ends[waiting] - 1
        self._follow(last)
        return self._asked[last] + 2

    def take(self, cycle: int) -> tuple[int, int]:
        """The next tile, for a row that waits from ``cycle`` on.

        Returns
        -------
        The cycle in which the row may go, and that in which the tile begins to shift.
        """
        tile = len(self._taken)
        self._follow(tile)
        shifts = self._shifts[tile]
        ready = max(cycle, shifts + self._config.size - 1)
        self._taken.append(ready)
        return ready, shifts

    def settled(self, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which no tile is on its way: all are there, or the next has no room."""
        self._follow(self._foreseeable())
        for tile in range(bisect_right(self._arrived, cycle), len(self._asked)):
            if self._asked[tile] > cycle:
                break
            cycle = self._arrived[tile]
        return cycle

    def _foreseeable(self) -> int:
        """The last tile of which it is known when it is asked for."""
        return min(len(self._queued), len(self._taken) + 1 + self._config.weight_fifo_tiles) - 1

    def drained(self, idle: int) -> int:
        """The cycle in which the path is empty, where nobody wants a tile any more from cycle ``idle`` on."""
        size, first = self._config.size, len(self._taken)
        self._follow(self._foreseeable())
        left = [self._arrived[tile] for tile in range(first, len(self._asked)) if self._asked[tile] < idle]
        end = idle
        if left:
            # The first one is in the array, or on its way there; others are read out of the FIFO to be forgotten.
            end = max(idle + 1, self._shifts[first] + size)
            for arrived in left[1:]:
                end = max(end, arrived) + size + 1
            end += 1  # it is seen a cycle later that nothing is left
        for item in (self._queued, self._asked, self._arrived, self._taken, self._ends, self._shifts):
            item.clear()
        return end

    def _follow(self, last: int) -> None:
        """Work out everything up to tile ``last``, as far as tiles that have been taken make room for it."""
        while len(self._asked) <= last:
            tile = len(self._asked)
            asked = self._queued[tile]
            arrived = 0
            if tile:
                asked = max(asked, self._asked[-1] + 1)
                arrived = self._arrived[-1]
            behind = tile - self._config.weight_fifo_tiles
            if behind >= 0:
                # The tile before has left with its last row.
                asked = max(asked, self._shift(behind) + self._config.size)
            self._asked.append(asked)
            self._arrived.append(max(asked + self._latency, arrived) + self._fetch)
        if self._asked:
            self._shift(min(len(self._asked) - 1, len(self._taken)))

    def _shift(self, tile: int) -> int:
        """The cycle in which a tile begins to leave the FIFO; every tile before the one before is taken."""
        while len(self._shifts) <= tile:
            number = len(self._shifts)
            before = self._taken[number - 1] if number else 0
            self._shifts.append(max(before, self._arrived[number]) + 1)
        return self._shifts[tile]
