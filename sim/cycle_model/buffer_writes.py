"""Rows of the unified buffer that the activation unit writes, and what the host reader loses by them.

A bank takes one row in a cycle, and results go first. A reader that has a row in every cycle then loses a cycle for
good; one whose rows take several beats each catches up.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["BufferWrites", "Results"]


@dataclass(frozen=True)
class Results:
    """``count`` rows, from row ``row`` on, written in even steps from cycle ``first`` to cycle ``last``."""

    first: int
    last: int
    count: int
    row: int


class BufferWrites:
    """Collects results in the order in which they are written."""

    def __init__(self, banks: int) -> None:
        self._banks = banks
        self._results: list[Results] = []
        self._lasts: list[int] = []

    def __len__(self) -> int:
        return len(self._results)

    def add(self, results: Results) -> None:
        """Results behind all others."""
        self._results.append(results)
        self._lasts.append(results.last)

    def forget(self, length: int) -> None:
        """All but the first ``length`` results that have been added."""
        del self._results[length:], self._lasts[length:]

    def end(self, cycle: int, row: int, rows: int) -> int:
        """The cycle behind the last of ``rows`` rows from ``row`` on, written from ``cycle`` on where results let."""
        end = cycle + rows
        for index in range(bisect_right(self._lasts, cycle - 1), len(self._results)):
            results = self._results[index]
            if results.first >= end:
                break
            length = results.last - results.first
            steps = max(1, results.count - 1)
            for number in range(results.count):
                turn = results.first + number * length // steps
                # In that cycle it is the turn of a row that is so far from the end.
                if cycle <= turn < end and (row + rows - end + turn - results.row - number) % self._banks == 0:
                    end += 1
        return end
