"""The weight path: fetcher, FIFO, and the shift into the array."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from openmxu.arch.config import Config
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.port import MemoryPort

__all__ = ["Weights"]

_QUEUED = 4
"""Cycles from the hand-over of a Read_Weights to its first request."""

_ON_THE_WAY = 2
"""Cycles in which a request passes registers, and comes even if the path is emptied."""

_PORT, _CAME = 1, 3
"""Cycles of the register between a request and the memory's port, and of the one between the port and the FIFO."""

_TURN = 4
"""Cycles from the turn of a Load_Weights among the tiles until its first row may come."""


class Weights:
    """The progress of each tile along the weight path, in the order of queueing.

    A tile is requested when the FIFO has room for all of it; its room is free again when its last row has left. It
    begins to shift into the array when it has arrived and the tile before is taken, and can be taken with its last row.

    Rows of a Load_Weights come beside those of weight memory: where both wait, they go in turn. A tile can be used when
    all tiles before it have arrived as well. Of two transposed tiles one begins to shift together with the end of the
    other, or S cycles later at the earliest.

    Parameters
    ----------
    has_loads
        The programs have Load_Weights.

    Attributes
    ----------
    begun, done
        For each Read_Weights of the programs that have ended the cycle of its first request at the memory's port, and
        that of its last beat; the cycle in which Halt empties the path instead of those that do not come.
    """

    def __init__(self, config: Config, latencies: Latencies, *, has_loads: bool) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self._config, self._has_loads = config, has_loads
        self._latency = latencies.read
        self._port = MemoryPort(config.size, config.weight_data_bytes, latencies.weight_beat)
        self._apart = 2 if config.tile_bytes >= 2 * config.weight_data_bytes else 1  # cycles between two requests
        # For each Read_Weights the number of tiles up to its end; for each tile the cycle from which on it may be
        # requested, those in which it is requested, is in the FIFO with all tiles before it, begins to shift, and is
        # taken.
        self._ends: list[int] = []
        self._queued: list[int] = []
        self._asked: list[int] = []
        self._arrived: list[int] = []
        self._shifts: list[int] = []
        self._taken: list[int] = []
        self._paces: list[int] = []  # for each tile when the memory is ready for the next one
        # The cycles in which rows of weight memory come, or only the last one of each tile without Load_Weights; and
        # for each tile that is requested the place of its last row there, -1 for that of a Load_Weights.
        self._rows: list[int] = []
        self._lasts: list[int] = []
        self._comes: list[int] = []  # for each tile when it is in the FIFO, whatever is missing before it
        # For tiles of Load_Weights: the cycle of the last row, for the cycle from which on rows may come.
        self._loads: dict[int, Callable[[int], int]] = {}
        self._transposed: set[int] = set()

    def queue(self, tiles: int, cycle: int) -> None:
        """Queue a Read_Weights."""
        self._queued += [cycle + _QUEUED] * tiles
        self._ends.append(len(self._queued))

    def load(self, cycle: int, transposed: bool, rows: Callable[[int], int]) -> int:
        """Queue a Load_Weights; ``rows`` finds the cycle of its last row, for that from which on rows may come. Returns
        the number of its tile."""
        tile = len(self._queued)
        self.queue(1, cycle)
        self._loads[tile] = rows
        if transposed:
            self._transposed.add(tile)
        return tile

    def follow(self, tile: int) -> None:
        """Compute the arrival of a tile, and of all before it."""
        self._follow(tile)

    def room(self) -> int:
        """The first cycle in which the fetcher's queue has room for a Read_Weights."""
        waiting = len(self._ends) - self._config.weight_queue_depth
        if waiting < 0:
            return 0
        last = self._ends[waiting] - 1
        self._follow(last)
        return self._asked[last] + 2

    def take(self, cycle: int) -> tuple[int, int]:
        """Take the next tile, for a row that waits from ``cycle`` on.

        Returns
        -------
        The cycle in which the row may proceed, and the one in which the tile begins to shift.
        """
        tile = len(self._taken)
        self._follow(tile)
        shifts = self._shifts[tile]
        ready = max(cycle, shifts + self._config.size - 1)
        self._taken.append(ready)
        return ready, shifts

    def swap(self, cycle: int) -> None:
        """The row that waited for the tile goes in this cycle, when it has nothing else to wait for."""
        self._taken[-1] = cycle

    def settled(self, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which no tile is in transit: all have arrived, or the next has no
        room."""
        self._follow(self._foreseeable())
        for tile in range(bisect_right(self._arrived, cycle), len(self._arrived)):
            if self._asked[tile] > cycle:
                break
            cycle = max(cycle, self._comes[tile])
        return cycle

    def _foreseeable(self) -> int:
        """The last tile whose request cycle is known."""
        return min(len(self._queued), len(self._taken) + 1 + self._config.weight_fifo_tiles) - 1

    def drained(self, idle: int) -> int:
        """The cycle in which the path is empty, if no instruction takes a tile from cycle ``idle`` on."""
        size, first = self._config.size, len(self._taken)
        self._follow(self._foreseeable())
        self._end(idle + _ON_THE_WAY)
        left = [
            self._arrived[tile] for tile in range(first, len(self._asked)) if self._asked[tile] < idle + _ON_THE_WAY
        ]
        end = idle
        if self._paces:
            # What is not requested does not come.
            self._port.next = self._paces[first + len(left) - 1] if first + len(left) else 0
        if left:
            # The first tile is in the array, or being shifted in; the others are read from the FIFO and discarded.
            shifted = self._shifts[first] + size
            end = max(idle + 1, shifted - 1)
            for tile, arrived in enumerate(left[1:], first + 1):
                end = max(end + 1, arrived) + size
                if {tile - 1, tile} <= self._transposed:
                    end = max(end, shifted + 2 * size)
                shifted = end
            # The empty path is detected a cycle later, except after a tile that was being shifted in already.
            end = max(idle + 2, shifted) if len(left) == 1 else end + 1
        self._port.free = 0
        for item in (self._queued, self._asked, self._arrived, self._taken, self._ends, self._shifts):
            item.clear()
        for found in (self._paces, self._rows, self._lasts, self._comes):
            found.clear()
        self._loads.clear()
        self._transposed.clear()
        return end

    def _end(self, cycle: int) -> None:
        """Note the begin and end of each Read_Weights of a program; nothing is requested from ``cycle`` on."""
        first = 0
        for end in self._ends:
            if first not in self._loads:
                self.begun.append(min([cycle, *(tile + _PORT for tile in self._asked[first : first + 1])]))
                comes = end <= len(self._asked) and self._asked[end - 1] < cycle
                self.done.append(self._rows[self._lasts[end - 1]] + 1 - _CAME if comes else cycle)
            first = end

    def enter(self, cycle: int) -> int:
        """Let a row of a Load_Weights into the FIFO, from ``cycle`` on; returns the cycle in which it comes."""
        rows = self._rows
        place = bisect_left(rows, cycle)
        if place < len(rows) and rows[place] == cycle and not (place and rows[place - 1] == cycle - 1):
            cycle, place = cycle + 1, place + 1
        # A row of weight memory that is due comes behind it, and so do those right behind.
        due = cycle
        while place < len(rows) and rows[place] <= due:
            due = rows[place] = due + 1
            place += 1
        if rows:
            self._port.free = max(self._port.free, rows[-1] + 1)
        return cycle

    def _follow(self, last: int) -> None:
        """Compute all cycles up to tile ``last``, for which tiles taken so far must make room."""
        while len(self._arrived) <= last:
            tile = len(self._arrived)
            self._ask(tile)
            row = self._lasts[tile]
            comes = 1 + (self._loads[tile](self._asked[tile] + _TURN) if row < 0 else self._rows[row])
            self._comes.append(comes)
            # Tiles that have come before an earlier one are counted one by one.
            self._arrived.append(max(comes, self._arrived[-1] + 1 if tile else 0))
        if self._asked:
            self._shift(min(len(self._arrived) - 1, len(self._taken)))

    def _ask(self, last: int) -> None:
        """Request tiles up to number ``last``, and those behind it whose room is known."""
        while (tile := len(self._asked)) < len(self._queued):
            asked, behind = self._queued[tile], tile - self._config.weight_fifo_tiles
            if tile:
                asked = max(asked, self._asked[-1] + self._apart)
            if behind >= 0:
                if tile > last and (behind >= len(self._arrived) or behind > len(self._taken)):
                    return
                # The last row of the earlier tile must have left.
                asked = max(asked, self._shift(behind) + self._config.size)
            self._asked.append(asked)
            if tile in self._loads:
                self._lasts.append(-1)
            else:
                self._fetch(asked)
            self._paces.append(self._port.next)

    def _fetch(self, asked: int) -> None:
        """Follow the rows of a tile of weight memory."""
        rows = self._port.transfer(asked + self._latency, self._config.size)
        self._rows += rows if self._has_loads else rows[-1:]
        self._lasts.append(len(self._rows) - 1)

    def _shift(self, tile: int) -> int:
        """The cycle in which a tile begins to leave the FIFO; all tiles before it must be taken."""
        while len(self._shifts) <= tile:
            number = len(self._shifts)
            before = self._taken[number - 1] if number else 0
            begin = max(before, self._arrived[number]) + 1
            if {number - 1, number} <= self._transposed and begin > self._shifts[-1] + self._config.size:
                begin = max(begin, self._shifts[-1] + 2 * self._config.size)
            self._shifts.append(begin)
        return self._shifts[tile]
