"""A memory port: the cycles in which rows are transferred, beat by beat."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["MemoryPort"]


class MemoryPort:
    """Transfers rows in order through one direction of a port, at most one row per cycle.

    Of beats that wait for their turn, number n goes n beat times after the first, rounded down.

    Parameters
    ----------
    row_bytes, beat_bytes
        Powers of two.
    time
        Cycles from beat to beat, at least 1.
    collects
        Of rows that share a beat the last one waits for it, as on the way to a memory, rather than the first.

    Attributes
    ----------
    free
        The first cycle without beats of earlier rows.
    next
        When the memory is ready for another beat, in units of 1 ÷ denominator of ``time``.
    """

    def __init__(self, row_bytes: int, beat_bytes: int, time: Fraction, *, collects: bool = False) -> None:
        self._time, self._unit = time.numerator, time.denominator
        self._beats, self._sharing = max(1, row_bytes // beat_bytes), max(1, beat_bytes // row_bytes)
        self._collects = collects
        self._is_limited = time > 1
        self._row_cycles = max(Fraction(1), time * row_bytes / beat_bytes)
        self.free = 0
        self.next = 0

    @property
    def is_limited(self) -> bool:
        """Whether the memory's rate is below a beat per cycle."""
        return self._is_limited

    @property
    def row_cycles(self) -> Fraction:
        """Cycles from row to row, at least 1."""
        return self._row_cycles

    def transfer(self, ready: int, rows: int, lane: int = 0, *, alternate: bool = False) -> Sequence[int]:
        """The cycles of the last beat of each row, of which the first may go in cycle ``ready``.

        ``lane`` is the place of the first row in its beat; ``alternate`` rows have a beat each.
        """
        if not self._is_limited:
            start = max(ready, self.free)
            self.free = start + rows * self._beats
            return range(start + self._beats - 1, self.free, self._beats)
        if self._sharing > 1:
            return [self.row(ready, waits) for waits in self.waits(rows, lane, alternate=alternate)]
        start = max(self.next, max(ready, self.free) * self._unit)
        each = self._beats * self._time
        self.next = start + rows * each
        cycles = [moment // self._unit for moment in range(start + each - self._time, self.next, each)]
        self.free = cycles[-1] + 1
        return cycles

    def waits(self, rows: int, lane: int, *, alternate: bool) -> Sequence[bool]:
        """Which rows of a transfer wait for a beat; see :meth:`transfer`."""
        if alternate or self._sharing == 1:
            return [True] * rows
        waiting = self._sharing - 1 if self._collects else 0
        found = [(lane + row) % self._sharing == waiting for row in range(rows)]
        found[-1 if self._collects else 0] = True
        return found

    def row(self, ready: int, waits: bool) -> int:
        """The cycle of the last beat of a row, which may go in cycle ``ready`` and may wait for a beat."""
        cycle = max(ready, self.free)
        if waits:
            last = max(self.next, cycle * self._unit) + (self._beats - 1) * self._time
            self.next = last + self._time
            cycle = last // self._unit
        self.free = cycle + 1
        return cycle
