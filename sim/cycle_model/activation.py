"""The activation unit: passes over rows, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from openmxu.rtl.activation.element_fetcher import ElementFetcher
from openmxu.sim.cycle_model.accumulators import AccumulatorReads, EvenSteps
from openmxu.sim.cycle_model.buffer_traffic import BufferReads, BufferWrites, Fetch, Results
from openmxu.sim.cycle_model.demand import load_cycles, pass_cycles
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.passes import Passes
from openmxu.sim.cycle_model.unit import Comparison, InOrderUnit, Waits
from openmxu.sim.cycle_model.work import Work

__all__ = ["Activation"]


@dataclass(frozen=True)
class _Soon:
    """What queued instructions read of elements, as far as known when instructions up to place ``known`` were worked
    out: those before ``place``, which end before cycle ``end``. What the array does was known up to ``until``."""

    known: int
    place: int
    until: int
    end: int
    fetches: list[Fetch]


class Activation(InOrderUnit):
    """Executes Activate and loads of parameters and of the table."""

    walk = 6
    """Cycles from taking a command to its first pass in the queue, and to the request for that pass's row."""

    offered = 1
    """Cycles from the queue to the lanes, if nothing delays the pass."""

    ahead = 16
    """Passes that the walker may be ahead of the lanes."""

    def __init__(
        self, waits: Waits, work: Work, latencies: Latencies, sums: AccumulatorReads, reads: BufferReads
    ) -> None:
        super().__init__(waits)
        self._work = work
        self._sums = sums
        self._reads = reads
        self.writes = BufferWrites(work.config.unified_buffer_banks)
        self._results = (work.rows * work.result_bytes).tolist()
        self._banks = work.config.unified_buffer_banks
        self._first = work.unified_buffer.first.tolist()
        self._result = latencies.result
        self._end = latencies.result - latencies.result_lead
        self._lead = latencies.result_lead
        self._element = latencies.element
        self._groups = groups = work.config.column_groups
        self._by_parity = work.by_parity.tolist()
        self._passes = (work.rows * work.result_bytes * (work.positions + work.has_operand)).tolist()
        self._is_load = work.is_load.tolist()
        self._load_rows = work.load_rows.tolist()
        self._load_row, self._load_last = (cycles.tolist() for cycles in load_cycles(work))
        self._positions = work.positions.tolist()
        self._from_elements = work.from_unified_buffer.tolist()
        self._reads_elements = (work.from_unified_buffer | work.has_operand).tolist()
        self._is_pooled = work.is_pooled.tolist()
        self._source = work.source.first.tolist()
        self._operand = work.operand.first.tolist()
        # A first pass whose reads take longer than its lanes begins later by the difference.
        is_wide = np.where(work.from_unified_buffer, work.source_wide, work.operand_wide)
        self._is_wide = is_wide.tolist()
        self._length = (pass_cycles(work) - ((1 + is_wide).clip(groups) - groups)).tolist()
        # Passes in the queue, and the one offered to the lanes.
        self._queued = ElementFetcher.passes_ahead(work.config) + 1
        self._is_shared = bool(work.loads_weights.any())
        self._element_banks: dict[int, list[int]] = {}  # of each pass, by instruction
        self._soon = _Soon(-1, 0, 0, 0, [])
        self._next = 0  # the first cycle in which the lanes are free
        self._walker = 0
        self._last_load = -1  # the place of the last queued load

    def queue(self, number: int, cycle: int, compared: Comparison) -> None:
        if self._is_load[number]:
            self._last_load = len(self.numbers)
        super().queue(number, cycle, compared)

    def last_written(self) -> int:
        self.last_done()
        return self._written(len(self.numbers) - 1) if self.numbers else -1

    def _written(self, place: int) -> int:
        """The cycle in which all results of an instruction are written; nothing follows the end of a load."""
        return self.done[place] + (0 if self._is_load[self.numbers[place]] else self._lead)

    def _soonest(self, place: int, accepted: int, before: int, found: Mapping[int, int]) -> int:
        # As in `_execute`, with nothing in the way.
        number = self.numbers[place]
        if self._is_load[number]:
            rows = (self._load_rows[number] - 1) * self._load_row[number] + self._load_last[number]
            return max(accepted + 4, before + 3) + rows
        return max(accepted + 1 + self.walk + self.offered + self._end, before) + self._length[number]

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        cycle = self._offered(place)
        if self._is_load[number]:
            if self.done:
                cycle = max(cycle, self._written(place - 1) + 1)
            self._taken = self._load(number, cycle + 1)
            return cycle, self._taken
        self._taken = cycle = max(cycle, self._walker)
        start = max(cycle + self.walk + self.offered, self._next)
        if self._reads_elements[number]:
            start = max(start, self._first_element(number, cycle))
        begins: list[EvenSteps] = []
        if self._reads_elements[number] and self._is_delayed(number, cycle, start + self._length[number]):
            start, self._next = self._follow(number, cycle)
        elif self._from_elements[number]:
            self._next = start + self._length[number]
        else:
            self._next, begins = self._sums.run(number, start, self._length[number])
        passes = self._passes[number]
        if self._is_shared and self._reads_elements[number]:
            self._fetch(number, cycle, start)
        self._write(number, start, begins if passes == self._results[number] else [])
        self._walker = max(cycle + passes, self._next - self.ahead * self._groups)
        return start, self._next - 1 + self._end

    def _is_delayed(self, number: int, cycle: int, end: int) -> bool:
        """Whether passes of an Activate from ``cycle`` to ``end`` over rows of the unified buffer may have to wait for
        the matrix unit, or those over accumulator rows between them."""
        if self._reads.held.any_between(cycle, end):
            return True
        return not self._from_elements[number] and self._sums.any_between(cycle, end)

    def _first_element(self, number: int, cycle: int) -> int:
        """The earliest beginning of an Activate taken in ``cycle`` at which its first unified buffer row, if it needs
        any, has arrived."""
        if not self._from_elements[number]:
            before, row = self._positions[number], self._operand[number]
        else:
            before, row = 0, self._source[number]
            if self._is_pooled[number]:
                passes = Passes.of(self._work, number)
                if not passes.elements.any():  # every window lies outside the plane
                    return 0
                before = int((passes.elements > 0).argmax())
                row = int(passes.row[before])
        # The passes before it enter the queue one per cycle, and then take as long as other passes.
        granted = self._reads.all.free(cycle + self.walk + before, row % self._banks)
        return granted + self._element - before * self._groups

    def _follow(self, number: int, cycle: int) -> tuple[int, int]:
        """Begin and end of an Activate taken in ``cycle``, computed pass by pass, if reads of the unified buffer have
        to wait."""
        passes = Passes.of(self._work, number)
        ahead = deque([-1] * self._queued, maxlen=self._queued)
        enters, granted, start = cycle + self.walk - 1, -1, -1
        for row, is_sum, elements in zip(
            passes.row.tolist(), passes.is_sum.tolist(), passes.elements.tolist(), strict=True
        ):
            # A pass enters the queue with the request for its first row.
            enters = max(enters, ahead[0] + 1)
            begin = max(self._next, enters + 1 + self.offered)
            for place in range(elements):
                granted = self._reads.all.free(max(enters, granted) + 1, (row + place) % self._banks)
                # The second row bypasses the register in which the first one waits.
                begin = max(begin, granted + self._element - place)
                enters += 1
            if is_sum:
                begin = self._sums.free(begin, row)
            enters = max(enters + (elements == 0), granted - 1)
            self._next = begin + self._groups
            ahead.append(self._next - 1)
            start = begin if start < 0 else start
        return start, self._next

    def _fetch(self, number: int, cycle: int, start: int) -> None:
        """Record the reads of an Activate that is taken in ``cycle``, of passes from ``start`` to ``_next``."""
        banks = self._element_banks.get(number)
        if banks is None:
            passes = Passes.of(self._work, number)
            banks = np.where(passes.elements > 0, passes.row % self._banks, -1).tolist()
            self._element_banks[number] = banks
        # A pass enters the queue when the one so many places before it enters the lanes.
        span = self._next - start
        paced = start + 2 - (self._queued - 1) * span // len(banks)
        fetch = Fetch(banks, self._is_wide[number], cycle + self.walk, paced, span)
        self._reads.elements.add(fetch)

    def _load(self, number: int, cycle: int) -> int:
        """The end of a load, the cycle after the last write."""
        first, row_cycles = self._first[number], self._load_row[number]
        cycle += 2 - row_cycles
        for row in range(first, first + self._load_rows[number]):
            cycle = self._reads.all.free(cycle + row_cycles, row % self._banks)
            self._reads.loads.add(cycle, 1, row, 1)
        return cycle + self._load_last[number] - 1

    def _write(self, number: int, start: int, begins: Sequence[EvenSteps]) -> None:
        """Record the results of passes from ``start`` to ``_next``, in even steps unless their ``begins`` are given."""
        count, row = self._results[number], self._first[number]
        end = self._groups - 1 + self._result
        steps = [(passes, first + end, last + end) for passes, first, last in begins]
        if not steps:
            first = start - 1 + self._result + (self._next - start) // count
            steps = [(count, first, self._next - 1 + self._result)]
        # Results by parity come in two halves, others in one.
        distance = 1 + self._by_parity[number]
        half, written = -(-count // distance), 0
        for passes, first, last in steps:
            run = Results(first, last, passes, row, distance)
            before = min(passes, max(0, half - written))
            if before:
                self.writes.add(Results(first, run.turn(before - 1), before, row + distance * written, distance))
            if before < passes:
                place = distance * (written + before - half) + 1
                self.writes.add(Results(run.turn(before), last, passes - before, row + place, distance))
            written += passes

    @contextmanager
    def foreseen(self, *, loads_alone: bool = False, until: int | None = None) -> Iterator[None]:
        """A context that also knows the results and loads of queued instructions whose begin is already known; with
        ``loads_alone`` none behind the last load, and none that begins behind cycle ``until``."""
        end = self._last_load + 1 if loads_alone else len(self.numbers)
        state = self._next, self._walker, self._taken, self._sums.position
        length, loads, known = len(self.writes), len(self._reads.loads), len(self.done)
        fetches = len(self._reads.elements)
        while (
            len(self.done) < end
            and (until is None or self._next < until)
            and self._is_certain(self.numbers[len(self.done)])
        ):
            self._work_out()
        yield
        self.writes.forget(length)
        self._reads.loads.forget(loads)
        self._reads.elements.forget(fetches)
        del self.begun[known:], self.done[known:]
        self._next, self._walker, self._taken, self._sums.position = state

    @contextmanager
    def fetching(self, until: int) -> Iterator[None]:
        """A context that also knows the elements that queued instructions read up to cycle ``until``, in programs with
        Load_Weights. What it finds is kept as long as it holds: many loads come during one instruction."""
        if not self._is_shared:
            yield
            return
        elements = self._reads.elements
        length, known = len(elements), len(self.done)
        if self._soon.known != known or self._is_stale(until):
            with self.foreseen(until=until):
                self._soon = _Soon(known, len(self.done), self._reads.all.end, self._next, elements.behind(length))
        for fetch in self._soon.fetches:
            elements.add(fetch)
        yield
        elements.forget(length)

    def _is_stale(self, until: int) -> bool:
        """Whether what :meth:`fetching` found last does not hold up to cycle ``until``."""
        soon = self._soon
        may_follow = soon.end < until and soon.place < len(self.numbers)
        if may_follow and self._is_certain(self.numbers[soon.place], self.numbers[soon.known : soon.place]):
            return True
        return soon.until < min(soon.end, self._reads.all.end)

    def _is_certain(self, number: int, worked_out: Sequence[int] = ()) -> bool:
        """Whether all that an instruction waits for is known, or among those that are ``worked_out``."""
        return all(self._waits.is_known(other) or other in worked_out for other in self._waits.of[number])
