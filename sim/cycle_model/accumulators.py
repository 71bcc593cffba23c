"""Bank conflicts in the accumulators, between reads of the activation unit and updates of the matrix unit.

A bank serves one read per cycle, and the matrix unit has priority. It alternates between rows of both banks, so a pass
of the activation unit waits a cycle if its row lies in the bank that the matrix unit reads. If the next instruction
breaks the alternation, the lanes see both orders at the same time, and the pass waits until the change has passed all
lanes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from openmxu.arch.isa import Register
from openmxu.sim.cycle_model.passes import Passes
from openmxu.sim.cycle_model.work import Work

__all__ = ["AccumulatorReads", "EvenSteps", "Updates"]

EvenSteps = tuple[int, int, int]
"""A number of passes, and the cycles in which the first and the last one of them begin."""


@dataclass
class Updates:
    """When the matrix unit adds to rows of the accumulators, as column 0 sees it.

    Attributes
    ----------
    begins, ends
        Cycles of each run of consecutive rows, the second exclusive.
    orders
        For each run the bank of its row in even cycles.
    """

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    def add(self, cycle: int, rows: int, row: int) -> None:
        """Add updates of ``rows`` rows from ``row`` on, one per cycle from ``cycle`` on."""
        order = (row - cycle) & 1
        if self.ends and self.ends[-1] == cycle and self.orders[-1] == order:
            self.ends[-1] = cycle + rows
            return
        self.begins.append(cycle)
        self.ends.append(cycle + rows)
        self.orders.append(order)


@dataclass(frozen=True)
class _Sequence:
    """The passes of an Activate over accumulator rows.

    Attributes
    ----------
    free, contended
        For each pass the cycle in which it begins, relative to the first pass: without and with contention from the
        matrix unit.
    banks
        For each pass the bank of its row.
    length
        Cycles of all passes without contention, including those over unified buffer rows.
    """

    free: Sequence[int]
    contended: Sequence[int]
    banks: Sequence[int]
    length: int


class AccumulatorReads:
    """Delays passes over accumulator rows that conflict with the matrix unit."""

    def __init__(self, work: Work, updates: Updates) -> None:
        self._work = work
        self._updates = updates
        self._groups = work.config.column_groups
        lanes = work.config.activation_lanes
        offsets = [lane * self._groups - (lane % 2 if self._groups == 1 else 0) for lane in range(lanes)]
        self._span = max(offsets)
        self._period = max(2, self._groups)
        self.position = 0
        """The first run of updates that may still matter."""
        self._sequences: dict[tuple[int, ...], _Sequence] = {}

    def run(self, number: int, start: int, length: int) -> tuple[int, list[EvenSteps]]:
        """The end of the passes of instruction ``number``, which are ready in cycle ``start`` and take ``length``
        cycles; and how they begin, if the matrix unit may hold them up."""
        begins: list[EvenSteps] = []
        if not self.any_between(start, start + length):
            return start + length, begins
        return self._follow(self._sequence(number), start, begins), begins

    def any_between(self, start: int, end: int) -> bool:
        """Whether the matrix unit adds to any row in cycles ``start``, before which no pass is left, up to ``end``."""
        self._pass_by(start)
        begins = self._updates.begins
        return self.position < len(begins) and begins[self.position] < end

    def free(self, cycle: int, row: int) -> int:
        """The first cycle from ``cycle`` on in which a pass over an accumulator row may begin."""
        self._pass_by(cycle)
        while any(self._blocks(run, cycle, row & 1) for run in self._runs(cycle)):
            cycle += 1
        return cycle

    def _pass_by(self, cycle: int) -> None:
        self.position = bisect_right(self._updates.ends, cycle - self._span, self.position)

    def _follow(self, passes: _Sequence, cycle: int, noted: list[EvenSteps]) -> int:
        free, contended, banks = passes.free, passes.contended, passes.banks
        count, index = len(passes.free), 0
        if count == 0:
            return cycle + passes.length
        cycle += free[0]
        rest = passes.length - free[-1]
        while True:
            self._pass_by(cycle)
            begin, end, following = self._near(cycle)
            before, first = index, cycle
            if cycle < begin:
                index, cycle = _advance(free, free, index, cycle, begin)
                noted.append(_even_steps(free, before, index, first))
            elif following <= cycle:
                # More than one run overlaps: advance pass by pass.
                cycle = self.free(cycle, banks[index])
                noted.append((1, cycle, cycle))
                if index + 1 == count:
                    return cycle + rest
                cycle += free[index + 1] - free[index]
                index += 1
                continue
            elif self._blocks(self.position, cycle, banks[index]):
                cycle += 1
                continue
            else:
                index, cycle = _advance(contended, free, index, cycle, min(end, following))
                noted.append(_even_steps(contended, before, index, first))
            if index == count:
                return cycle + rest

    def _near(self, cycle: int) -> tuple[int, int, int]:
        """Begin and end of the current or next run as the lanes see it, and the beginning of the run after it."""
        updates, run = self._updates, self.position
        never = 1 << 62
        if run == len(updates.ends):
            return never, never, never
        following = updates.begins[run + 1] if run + 1 < len(updates.ends) else never
        return updates.begins[run], updates.ends[run] + self._span, following

    def _runs(self, cycle: int) -> range:
        stop = self.position
        while stop < len(self._updates.begins) and self._updates.begins[stop] <= cycle:
            stop += 1
        return range(self.position, stop)

    def _blocks(self, run: int, cycle: int, bank: int) -> bool:
        """Whether a row of a run is at a lane's first column, in the given bank."""
        updates = self._updates
        begin, end = updates.begins[run], updates.ends[run]
        if cycle >= end + self._span or (cycle + updates.orders[run]) & 1 != bank:
            return False
        # A run shorter than the distance between lanes lies between two lanes at times.
        since, rows = cycle - begin, end - begin
        return rows >= self._period or since % self._period < rows

    def _sequence(self, number: int) -> _Sequence:
        work = self._work
        values = work.words.values
        key: tuple[int, ...] = (
            int(work.rows[number]),
            int(work.accumulators.first[number]) & 1,
            int(work.result_bytes[number]),
            int(work.has_operand[number]) + int(work.operand_wide[number]),
        )
        if work.is_pooled[number]:
            registers = (Register.POOLING_WINDOW, Register.POOLING_PLANE)
            key += tuple(int(values(register)[number]) for register in registers)
        if key not in self._sequences:
            self._sequences[key] = self._make(number)
        return self._sequences[key]

    def _make(self, number: int) -> _Sequence:
        passes = Passes.of(self._work, number)
        lengths = passes.elements.clip(self._groups)
        begins = np.cumsum(lengths) - lengths
        free, banks = begins[passes.is_sum], passes.row[passes.is_sum] & 1
        gaps = np.diff(free)
        # Because banks alternate, a pass over the other bank begins an odd number of cycles later.
        contended = np.cumsum(np.concatenate([free[:1], gaps + ((gaps + np.diff(banks)) & 1)]))
        return _Sequence(free.tolist(), contended.tolist(), banks.tolist(), int(lengths.sum()))


def _even_steps(begins: Sequence[int], index: int, stop: int, cycle: int) -> EvenSteps:
    """Passes ``index`` up to ``stop``, the first of which begins in ``cycle``."""
    return stop - index, cycle, begins[stop - 1] - begins[index] + cycle


def _advance(begins: Sequence[int], free: Sequence[int], index: int, cycle: int, limit: int) -> tuple[int, int]:
    """Skip passes up to ``limit``, if pass ``index`` begins in ``cycle`` and the others follow as in ``begins``.

    Returns the index of the next pass, and its beginning: its distance to the pass before is that in ``free``. If no
    pass is left, the beginning is that of the last pass.
    """
    offset = begins[index] - cycle
    stop = bisect_left(begins, limit + offset, index)
    cycle = begins[stop - 1] - offset
    if stop < len(begins):
        cycle += free[stop] - free[stop - 1]
    return stop, cycle
