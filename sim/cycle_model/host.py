"""Host transfers: bursts of the memory port, rows of the unified buffer."""

from __future__ import annotations

from collections import deque

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.host.host_reader import HostReader as ReaderHardware
from openmxu.rtl.host.host_writer import HostWriter as WriterHardware
from openmxu.sim.cycle_model.activation import Activation
from openmxu.sim.cycle_model.buffer_traffic import BufferReads
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.unit import Comparison, InOrderUnit, Waits
from openmxu.sim.cycle_model.weights import Weights
from openmxu.sim.cycle_model.work import Work

__all__ = ["HostReader", "HostWriter"]


class _Transfers(InOrderUnit):
    """Common part of both directions: a row takes ``_row`` cycles, a burst is a whole transfer or one row of it."""

    def __init__(self, waits: Waits, work: Work, latencies: Latencies) -> None:
        super().__init__(waits)
        self._latency = latencies.memory
        self._rows = work.rows.tolist()
        self._is_alternate = work.is_alternate.tolist()
        self._row = max(1, work.config.size // work.config.host_data_bytes)
        self._free = 0  # the first cycle without beats of earlier transfers on the port


class HostReader(_Transfers):
    """Executes Read_Host_Memory: requests bursts ahead and writes the arriving rows."""

    place = 4
    """Cycles from the request for a burst until the place of its first row is known, before which no beat is taken."""

    def __init__(self, waits: Waits, work: Work, latencies: Latencies, activation: Activation) -> None:
        super().__init__(waits, work, latencies)
        self._activation = activation
        self._read_latency = max(latencies.read, self.place)
        self._first = work.unified_buffer.first.tolist()
        # Queued bursts, two in a register slice and the one in progress may be outstanding. The last row of a burst has
        # its place, and the next one is in progress, when two rows before it have come: for each burst this cycle.
        ahead = ReaderHardware.runs_ahead + 3
        self._ahead: deque[int] = deque([-1] * ahead, maxlen=ahead)
        self._came: deque[int] = deque([-1] * 3, maxlen=3)  # the cycles of the last three rows
        self._asked = 0
        self._written = -1  # the cycle in which the last row of earlier transfers is written

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        rows, bursts = self._rows[number], 1
        if self._is_alternate[number]:
            rows, bursts = 1, rows
        self._taken = asked = max(self._offered(place), self._asked + 1, self._has_place(place))
        with self._activation.foreseen():
            for burst in range(bursts):
                asked += 1
                self._free = max(asked + self._read_latency, self._free) + rows * self._row
                # The next burst is requested when this one has an entry among the outstanding bursts.
                asked = max(asked, self._ahead[0] + 3)
                self._came.extend(self._free - 1 - left * self._row for left in reversed(range(min(rows, 3))))
                self._ahead.append(self._came[0])
                self._write(self._first[number] + burst, rows)
        self._asked = asked
        return self._taken, self._written

    def _has_place(self, place: int) -> int:
        """The first cycle in which the destination of a transfer has a place behind those of earlier ones."""
        # Queued destinations and the one in progress, which is left when its last row has come.
        before = place - ReaderHardware.runs_ahead - 1
        return self.done[before] if before >= 0 else 0

    def _write(self, row: int, rows: int) -> None:
        """Write ``rows`` rows from ``row`` on, whose last beat comes in the cycle before ``_free``."""
        before, self._written = self._written, self._free
        if self._row > 1:
            return  # with several beats per row, a row waits for results without delaying the next one
        begin = max(self._free + 1 - rows, before + 1)
        self._written = self._activation.writes.end(begin, row, rows) - 1
        # Two rows may wait, so a beat comes after the write of the row two before it.
        self._free = max(self._free, before + 1 if rows == 1 else self._written)


class HostWriter(_Transfers):
    """Executes Write_Host_Memory: reads rows ahead and sends them as bursts; and Load_Weights, one row in a cycle."""

    first_read = 3
    """Cycles from taking a command to the read of its first row."""

    read = UnifiedBuffer.read_latency + 1
    """Cycles from the read of a row to its arrival at the port."""

    credit = 2
    """Cycles from a row's last beat to the read of another row in its place."""

    def __init__(
        self,
        waits: Waits,
        work: Work,
        latencies: Latencies,
        activation: Activation,
        reads: BufferReads,
        weights: Weights,
    ) -> None:
        super().__init__(waits, work, latencies)
        self._activation = activation
        self._weights = weights
        self._loads_weights, self._transposed = work.loads_weights.tolist(), work.transposed.tolist()
        # By place: the tile of a Load_Weights, the cycle from which on its rows may leave, and that of the last one.
        self._tile: dict[int, int] = {}
        self._turn: dict[int, int] = {}
        self._loaded: dict[int, int] = {}
        self._first = work.unified_buffer.first.tolist()
        self._banks = work.config.unified_buffer_banks
        # Reads that delay rows, and those that delay rows that follow each other at once; with several beats per row,
        # waiting a single cycle costs nothing.
        self._before = (reads.held,), (reads.all, reads.loads)
        # For each burst whose data may not be sent yet the cycle of its last row.
        ahead = WriterHardware.runs_ahead + 3
        self._runs: deque[int] = deque([-1] * ahead, maxlen=ahead)
        self._asked = -1
        self._next_read = 0
        # For each row read ahead the cycle of its last beat, after which another row may be read.
        self._left: deque[int] = deque([-1] * WriterHardware.rows_ahead, maxlen=WriterHardware.rows_ahead)

    def queue(self, number: int, cycle: int, compared: Comparison) -> None:
        if self._loads_weights[number]:
            place = len(self.numbers)

            def rows(turn: int) -> int:
                self._turn[place] = turn
                self.done_at(place)
                return self._loaded[place]

            self._tile[place] = self._weights.load(cycle, self._transposed[number], rows)
        super().queue(number, cycle, compared)

    def _work_out(self) -> None:
        place = len(self.done)
        if place in self._tile and place not in self._turn:
            # The weight path finds the tile's turn, and then comes back for its rows.
            self._weights.follow(self._tile[place])
        else:
            super()._work_out()

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        taken = max(self._offered(place), self._asked + 1)
        if place >= WriterHardware.transfers_ahead:
            taken = max(taken, self.done[place - WriterHardware.transfers_ahead] + 1)
        self._taken = taken
        if place in self._tile:
            return taken, self._load(place, taken)
        # Its rows are read in turn, behind those of the transfer before.
        rows, begin = self._rows[number], max(taken + self.first_read, self._next_read)
        end = max(begin + self.read, self._free) + rows * self._row
        with self._activation.foreseen():
            is_delayed = any(reads.any_between(begin, end) for reads in self._before[self._row == 1])
            if is_delayed:
                end = self._follow(begin, self._first[number], rows, self._row)
        if not is_delayed:
            self._left.extend(range(end - 1 - (rows - 1) * self._row, end - 1, self._row)[-WriterHardware.rows_ahead :])
            self._next_read = max(begin + rows, self._left[0] + self.credit + 1)
            self._left.append(end - 1)
        self._free = end
        self._ask(taken, end, rows if self._is_alternate[number] else 1)
        return taken, end + self._latency

    def _ask(self, cycle: int, end: int, bursts: int) -> None:
        """Follow the requests of a transfer that ends before cycle ``end``; the next transfer is taken after the last
        request."""
        for left in reversed(range(bursts)):
            cycle = max(cycle, self._runs[0] + 1) + 1
            self._runs.append(end - 1 - left * self._row)
        self._asked = cycle

    def _load(self, place: int, taken: int) -> int:
        """Follow a Load_Weights that is taken in cycle ``taken``; returns the cycle in which it is finished."""
        number = self.numbers[place]
        begin = max(taken + self.first_read, self._next_read)
        self._free = max(self._free, self._turn[place])
        with self._activation.foreseen():
            end = self._follow(begin, self._first[number], self._rows[number], 1)
        # The last row waits until all transfers before are done.
        if place:
            end = max(end, self.done[place - 1] + 2)
        self._free = end
        self._asked = taken
        self._runs.append(end - 1)
        self._loaded[place] = end
        return end

    def _follow(self, cycle: int, row: int, rows: int, each: int) -> int:
        """The end of the transfer of ``rows`` rows from ``row`` on, computed row by row from ``cycle`` on, of ``each``
        cycles at the port."""
        free, before = self._free, self._before[each == 1]
        for place in range(row, row + rows):
            cycle = max(cycle, self._left[0] + self.credit)
            while (granted := max(reads.free(cycle, place % self._banks) for reads in before)) > cycle:
                cycle = granted
            free = max(cycle + self.read, free) + each
            self._left.append(free - 1)
            cycle += 1
        self._next_read = cycle
        return free
