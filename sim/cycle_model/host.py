"""Host transfers: bursts of the memory port, rows of the unified buffer."""

from __future__ import annotations

from collections import deque

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.host.host_reader import HostReader as ReaderHardware
from openmxu.rtl.host.host_writer import HostWriter as WriterHardware
from openmxu.sim.cycle_model.activation import Activation
from openmxu.sim.cycle_model.buffer_traffic import BufferReads
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.unit import InOrderUnit, Waits
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

    def __init__(self, waits: Waits, work: Work, latencies: Latencies, activation: Activation) -> None:
        super().__init__(waits, work, latencies)
        self._activation = activation
        self._read_latency = latencies.read
        self._first = work.unified_buffer.first.tolist()
        # For each burst that may still be outstanding the cycle of its last row: queued ones, two in a register slice,
        # and the one in progress.
        ahead = ReaderHardware.runs_ahead + 3
        self._ahead: deque[int] = deque([-1] * ahead, maxlen=ahead)
        self._asked = 0

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        rows, bursts = self._rows[number], 1
        if self._is_alternate[number]:
            rows, bursts = 1, rows
        self._taken = asked = max(self._offered(place), self._asked + 1)
        for _ in range(bursts):
            asked += 1
            self._free = max(asked + self._read_latency, self._free) + rows * self._row
            # The next burst is requested when this one has an entry among the outstanding bursts.
            asked = max(asked, self._ahead[0] + 2)
            self._ahead.append(self._free - 1)
        self._asked = asked
        if self._row == 1:
            self._write(number)
        return self._taken, self._free

    def _write(self, number: int) -> None:
        """Delay rows by results written to the same bank."""
        rows = self._rows[number]
        with self._activation.foreseen():
            self._free = self._activation.writes.end(self._free + 1 - rows, self._first[number], rows) - 1


class HostWriter(_Transfers):
    """Executes Write_Host_Memory: reads rows ahead and sends them as bursts."""

    first_read = 3
    """Cycles from taking a command to the read of its first row."""

    read = UnifiedBuffer.read_latency + 1
    """Cycles from the read of a row to its arrival at the port."""

    def __init__(self, waits: Waits, work: Work, latencies: Latencies, reads: BufferReads) -> None:
        super().__init__(waits, work, latencies)
        self._first = work.unified_buffer.first.tolist()
        self._banks = work.config.unified_buffer_banks
        # With several beats per row, waiting a single cycle costs nothing.
        self._reads = reads.all if self._row == 1 else reads.held
        # For each burst whose data may not be sent yet the cycle of its last row.
        ahead = WriterHardware.runs_ahead + 3
        self._runs: deque[int] = deque([-1] * ahead, maxlen=ahead)
        self._asked = -1
        # For each row read ahead the cycle in which it leaves, after which another row may be read.
        self._left: deque[int] = deque([-1] * WriterHardware.rows_ahead, maxlen=WriterHardware.rows_ahead)

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        taken = max(self._offered(place), self._asked + 1)
        if place >= WriterHardware.transfers_ahead:
            taken = max(taken, self.done[place - WriterHardware.transfers_ahead] + 1)
        self._taken = taken
        rows, begin = self._rows[number], taken + self.first_read
        end = max(begin + self.read, self._free) + rows * self._row
        if self._reads.any_between(begin, end):
            end = self._follow(begin, self._first[number], rows)
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

    def _follow(self, cycle: int, row: int, rows: int) -> int:
        """The end of the transfer of ``rows`` rows from ``row`` on, computed row by row from ``cycle`` on."""
        free = self._free
        for place in range(row, row + rows):
            cycle = self._reads.free(max(cycle, self._left[0] + 1), place % self._banks)
            free = max(cycle + self.read, free) + self._row
            self._left.append(free - 1)
            cycle += 1
        return free
