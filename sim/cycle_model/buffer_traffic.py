"""Bank conflicts in the unified buffer: rows that units read and write, and the cycles that others wait for them.

A bank serves one read per cycle; the matrix unit has priority, then the activation unit, then the host writer. While
the matrix unit moves from bank to bank, others wait a cycle at most. But if its rows are so far apart that all of them
lie in one bank, as with strides of two or 16-bit operands, that bank is free only in cycles in which the matrix unit
does not read. Loads of the activation unit cost the host writer a cycle here and there, and elements that it reads for
Activate take up to every other cycle of Load_Weights.

A bank takes one write per cycle, and results of the activation unit have priority. A writer with a row in every cycle
then loses a cycle for good; one whose rows take several beats each catches up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from openmxu.arch.isa import Opcode, Register
from openmxu.sim.cycle_model.work import Work

__all__ = ["BufferReads", "BufferWrites", "ElementReads", "Fetch", "Reads", "Results", "Runs", "free_of_all"]


class Reads:
    """Reads of one unit, at most one in a cycle, kept as pieces of many reads each."""

    def __init__(self, banks: int) -> None:
        self._banks = banks
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def end(self) -> int:
        """The cycle after the last read."""
        return self._ends[-1] if self._ends else 0

    def free(self, cycle: int, bank: int) -> int:
        """The first cycle from ``cycle`` on without a read of this bank."""
        raise NotImplementedError

    def any_between(self, first: int, end: int) -> bool:
        """Whether there is a read in cycles ``first`` up to ``end``."""
        piece = bisect_right(self._ends, first)
        return piece < len(self._ends) and self._begin(piece) < end

    def _begin(self, piece: int) -> int:
        """The cycle of the first read of a piece."""
        raise NotImplementedError


class Runs(Reads):
    """Runs of reads, one row per cycle: first and last cycle, bank of the first row, and bank step from row to row."""

    def __init__(self, banks: int) -> None:
        super().__init__(banks)
        self._begins: list[int] = []
        self._phases: list[int] = []  # bank in cycle 0, extrapolated
        self._steps: list[int] = []

    def add(self, cycle: int, rows: int, bank: int, step: int) -> None:
        phase = (bank - step * cycle) % self._banks
        if self._ends and (self._ends[-1], self._phases[-1], self._steps[-1]) == (cycle, phase, step):
            self._ends[-1] = cycle + rows
            return
        self._begins.append(cycle)
        self._ends.append(cycle + rows)
        self._phases.append(phase)
        self._steps.append(step)

    def forget(self, length: int) -> None:
        """Drop all but the first ``length`` runs."""
        for values in (self._begins, self._ends, self._phases, self._steps):
            del values[length:]

    def _begin(self, piece: int) -> int:
        return self._begins[piece]

    def free(self, cycle: int, bank: int) -> int:
        for run in range(bisect_right(self._ends, cycle), len(self._begins)):
            if cycle < self._begins[run]:
                break
            step = self._steps[run]
            if (self._phases[run] + step * cycle) % self._banks == bank:
                if step:
                    return self.free(cycle + 1, bank)
                cycle = self._ends[run]
            elif cycle < self._ends[run]:
                break
        return cycle


@dataclass(frozen=True)
class Fetch:
    """Reads of the elements of one Activate.

    Pass i needs a row of bank ``banks[i]``, or none for -1, and with ``is_wide`` the row behind it as well. Its request
    comes i cycles behind ``first`` as long as the queue of passes has room, and otherwise with the pace of the lanes,
    which take ``span`` cycles for all passes, from cycle ``paced`` on.
    """

    banks: Sequence[int]
    is_wide: bool
    first: int
    paced: int
    span: int

    @property
    def end(self) -> int:
        """The cycle after the last read."""
        return max(self.first + len(self.banks), self.paced + self.span) + 1

    def reads(self, cycle: int, bank: int, banks: int) -> bool:
        """Whether a row of one of so many banks is read in a cycle."""
        return self._reads(cycle, bank) or (self.is_wide and self._reads(cycle - 1, (bank - 1) % banks))

    def _reads(self, cycle: int, bank: int) -> bool:
        count, early, late = len(self.banks), cycle - self.first, cycle - self.paced
        if 0 <= early < count and early * self.span // count <= late:
            return self.banks[early] == bank
        number = -(-late * count // self.span)
        is_there = 0 <= number < count and number <= early and number * self.span // count == late
        return is_there and self.banks[number] == bank


class ElementReads(Reads):
    """Reads of the activation unit for elements, in the order of its instructions.

    Where the ``matrix`` unit reads the same bank, they come a cycle later.
    """

    def __init__(self, banks: int, matrix: Runs) -> None:
        super().__init__(banks)
        self._matrix = matrix
        self._fetches: list[Fetch] = []

    def add(self, fetch: Fetch) -> None:
        """Append those of an instruction."""
        self._fetches.append(fetch)
        self._ends.append(max(fetch.end, self.end))

    def _begin(self, piece: int) -> int:
        fetch = self._fetches[piece]
        return min(fetch.first, fetch.paced)

    def behind(self, length: int) -> list[Fetch]:
        """Those behind the first ``length`` instructions."""
        return self._fetches[length:]

    def forget(self, length: int) -> None:
        """Drop all but those of the first ``length`` instructions."""
        del self._fetches[length:], self._ends[length:]

    def free(self, cycle: int, bank: int) -> int:
        for index in range(bisect_right(self._ends, cycle), len(self._fetches)):
            fetch = self._fetches[index]
            if cycle < min(fetch.first, fetch.paced):
                break
            while self._is_read(fetch, cycle, bank):
                cycle += 1
        return cycle

    def _is_read(self, fetch: Fetch, cycle: int, bank: int) -> bool:
        if fetch.reads(cycle, bank, self._banks):
            return True
        return fetch.reads(cycle - 1, bank, self._banks) and self._matrix.free(cycle - 1, bank) >= cycle


def free_of_all(reads: Sequence[Reads], cycle: int, bank: int) -> int:
    """The first cycle from ``cycle`` on without a read of this bank in any of the runs."""
    while (free := max((runs.free(cycle, bank) for runs in reads), default=cycle)) > cycle:
        cycle = free
    return cycle


class BufferReads:
    """Collects the reads of the matrix unit, and those for loads."""

    def __init__(self, work: Work) -> None:
        self._banks = banks = work.config.unified_buffer_banks
        words = work.words
        self._is_convolve = work.is_convolve.tolist()
        wide = work.wide_input
        stride_y = words.register(Register.CONVOLUTION_PLANE, "stride_y")
        stride_x = words.register(Register.CONVOLUTION_PLANE, "stride_x")
        self._plane = [words.register(Register.CONVOLUTION_PLANE, name).tolist() for name in ("height", "width")]
        self._shape = [words.field(Opcode.CONVOLVE, name).tolist() for name in ("height", "width")]
        self._offset = [words.field(Opcode.CONVOLVE, name).tolist() for name in ("dy", "dx")]
        self._strides = stride_y.tolist(), stride_x.tolist()
        self._first = work.unified_buffer.first.tolist()
        self._rows = work.rows.tolist()
        self._wide = wide.tolist()
        self.all = Runs(banks)
        self.held = Runs(banks)
        """Only runs that stay in one bank."""
        self.loads = Runs(banks)
        """Reads of the activation unit for loads."""
        self.elements = ElementReads(banks, self.all)
        """And for elements, in programs with Load_Weights."""

    def add(self, number: int, cycle: int, byte: int) -> None:
        """Add a pass of instruction ``number`` over input bytes ``byte`` that begins in ``cycle``."""
        banks, wide = self._banks, self._wide[number]
        first = self._first[number] + byte
        if not self._is_convolve[number]:
            step = (1 << wide) % banks
            self._add(cycle, self._rows[number], first, step)
            return
        (height, width), (dy, dx) = ((pair[0][number], pair[1][number]) for pair in (self._shape, self._offset))
        plane_height, plane_width = self._plane[0][number], self._plane[1][number]
        stride_y, stride_x = self._strides[0][number], self._strides[1][number]
        step = (stride_x << wide) % banks
        pitch = stride_y * plane_width << wide
        first += (dy * plane_width + dx) << wide
        columns = [x for x in range(width) if 0 <= x * stride_x + dx < plane_width]
        lines = [y for y in range(height) if 0 <= y * stride_y + dy < plane_height]
        if not columns or not lines:
            return
        left, right = columns[0], columns[-1] + 1
        is_whole = len(columns) == width and len(lines) == height  # no padding, for which nothing is read
        if is_whole and step and (pitch - width * (stride_x << wide)) % banks == 0:
            # The step from one output row to the next equals that within a row: a single run.
            self._add(cycle, height * width, first, step)
            return
        for y in lines:
            bank = first + y * pitch + (left * stride_x << wide)
            self._add(cycle + y * width + left, right - left, bank, step)

    def _add(self, cycle: int, rows: int, address: int, step: int) -> None:
        bank = address % self._banks
        self.all.add(cycle, rows, bank, step)
        if step == 0:
            self.held.add(cycle, rows, bank, step)


@dataclass(frozen=True)
class Results:
    """``count`` rows, ``row`` and others ``distance`` rows apart, written in even steps from cycle ``first`` to cycle
    ``last``."""

    first: int
    last: int
    count: int
    row: int
    distance: int

    def turn(self, number: int) -> int:
        """The cycle in which row ``number`` is written."""
        return self.first + number * (self.last - self.first) // max(1, self.count - 1)


class BufferWrites:
    """Collects results in the order in which they are written."""

    def __init__(self, banks: int) -> None:
        self._banks = banks
        self._results: list[Results] = []
        self._lasts: list[int] = []

    def __len__(self) -> int:
        return len(self._results)

    def add(self, results: Results) -> None:
        """Append results."""
        self._results.append(results)
        self._lasts.append(results.last)

    def forget(self, length: int) -> None:
        """Drop all but the first ``length`` results."""
        del self._results[length:], self._lasts[length:]

    def end(self, cycle: int, row: int, rows: int) -> int:
        """The cycle after the last of ``rows`` rows from ``row`` on, written from ``cycle`` on and delayed by
        results."""
        end = cycle + rows
        for index in range(bisect_right(self._lasts, cycle - 1), len(self._results)):
            results = self._results[index]
            if results.first >= end:
                break
            for number in range(results.count):
                turn, written = results.turn(number), results.row + number * results.distance
                # The row written in cycle ``turn`` is as far from the last row as ``turn`` is from ``end``.
                if cycle <= turn < end and (row + rows - end + turn - written) % self._banks == 0:
                    end += 1
        return end

    def last(self, cycles: Sequence[int], row: int) -> int:
        """The cycle in which the last of some rows from ``row`` on is written: each behind its beat and behind the row
        before, if results do not delay it. ``cycles`` are that of the write before and those of the beats."""
        written, *beats = cycles
        banks = self._turns(max(written, beats[0]), max(written, beats[-1]) + 2 * len(beats))
        for place, beat in enumerate(beats, row):
            written = max(written, beat) + 1
            while banks.get(written) == place % self._banks:
                written += 1
        return written

    def _turns(self, first: int, end: int) -> dict[int, int]:
        """For each cycle from ``first`` up to ``end`` in which a result is written its bank."""
        found = {}
        for index in range(bisect_right(self._lasts, first - 1), len(self._results)):
            results = self._results[index]
            if results.first >= end:
                break
            for number in range(results.count):
                found[results.turn(number)] = (results.row + number * results.distance) % self._banks
        return found
