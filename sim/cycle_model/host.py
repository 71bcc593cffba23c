"""Host transfers: bursts of the memory port, rows of the unified buffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.host.host_reader import HostReader as ReaderHardware
from openmxu.rtl.host.host_writer import HostWriter as WriterHardware
from openmxu.sim.cycle_model.activation import Activation
from openmxu.sim.cycle_model.buffer_traffic import BufferReads, Reads, free_of_all
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.port import MemoryPort
from openmxu.sim.cycle_model.unit import Comparison, InOrderUnit, Waits
from openmxu.sim.cycle_model.weights import Weights
from openmxu.sim.cycle_model.work import Work

__all__ = ["HostReader", "HostWriter"]


class _Transfers(InOrderUnit):
    """Common part of both directions: a burst is a whole transfer or one row of it."""

    def __init__(
        self, waits: Waits, work: Work, latencies: Latencies, activation: Activation, *, collects: bool = False
    ) -> None:
        super().__init__(waits)
        self._activation = activation
        self._latency = latencies.memory
        self._rows = work.rows.tolist()
        self._is_alternate = work.is_alternate.tolist()
        size, beat = work.config.size, work.config.host_data_bytes
        self._lane = (work.host.first % beat // size).tolist()
        self._port = MemoryPort(size, beat, latencies.host_beat, collects=collects)
        self._is_slow = self._port.row_cycles >= 2
        """Whether a row that waits a cycle does not delay the next one."""

    def _foreseen(self, *, loads_alone: bool = False) -> AbstractContextManager[None]:
        """A context that knows what the activation unit writes and loads meanwhile, where that delays rows."""
        return nullcontext() if self._is_slow else self._activation.foreseen(loads_alone=loads_alone)


class HostReader(_Transfers):
    """Executes Read_Host_Memory: requests bursts ahead and writes the arriving rows."""

    place = 4
    """Cycles from the request for a burst until the place of its first row is known, before which no beat is taken."""

    def __init__(self, waits: Waits, work: Work, latencies: Latencies, activation: Activation) -> None:
        super().__init__(waits, work, latencies, activation)
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
        self._taken = asked = max(self._offered(place), self._asked + 1, self._has_place(place, {}))
        with self._foreseen():
            for burst in range(bursts):
                asked += 1
                cycles = self._port.transfer(asked + self._read_latency, rows, self._lane[number])
                # The next burst is requested when this one has an entry among the outstanding bursts.
                asked = max(asked, self._ahead[0] + 3)
                self._came.extend(cycles[-3:])
                self._ahead.append(self._came[0])
                self._write(self._first[number] + burst, cycles)
        self._asked = asked
        return self._taken, self._written

    def _soonest(self, place: int, accepted: int, before: int, found: Mapping[int, int]) -> int:
        # As in `_execute`, with nothing in the way.
        return max(before, max(accepted, self._has_place(place, found)) + self._read_latency)

    def _has_place(self, place: int, found: Mapping[int, int]) -> int:
        """The first cycle in which the destination of a transfer has a place behind those of earlier ones, of which
        ``found`` has the ends that are not known."""
        # Queued destinations and the one in progress, which is left when its last row has come.
        before = place - ReaderHardware.runs_ahead - 1
        if before < 0:
            return 0
        return self.done[before] if before < len(self.done) else found[self.numbers[before]]

    def _write(self, row: int, cycles: Sequence[int]) -> None:
        """Write the rows from ``row`` on whose last beats come in ``cycles``."""
        port, rows = self._port, len(cycles)
        before, self._written = self._written, port.free
        if self._is_slow:
            return
        if port.is_limited:
            self._written = self._activation.writes.last([before, *cycles], row)
        else:
            begin = max(port.free + 1 - rows, before + 1)
            self._written = self._activation.writes.end(begin, row, rows) - 1
        # Two rows may wait, so a beat comes after the write of the row two before it.
        port.free = max(port.free, before + 1 if rows == 1 else self._written)


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
        super().__init__(waits, work, latencies, activation, collects=True)
        self._weights = weights
        self._loads_weights, self._transposed = work.loads_weights.tolist(), work.transposed.tolist()
        # By place: the tile of a Load_Weights, the cycle from which on its rows may leave, and that of the last one.
        self._tile: dict[int, int] = {}
        self._turn: dict[int, int] = {}
        self._loaded: dict[int, int] = {}
        self._first = work.unified_buffer.first.tolist()
        self._banks = work.config.unified_buffer_banks
        self._reads = reads
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
        port, lane, is_alternate = self._port, self._lane[number], self._is_alternate[number]
        before = port.free, port.next
        first = begin
        if self._is_slow:
            # Of rows that take several beats only the first one may be late.
            with self._activation.foreseen(loads_alone=True), self._activation.fetching(begin + 1):
                first = free_of_all(self._every_read(), begin, self._first[number] % self._banks)
        cycles = port.transfer(first + self.read, rows, lane, alternate=is_alternate)
        with self._foreseen(loads_alone=True), self._fetching(port.free):
            runs = self._before()
            is_delayed = any(reads.any_between(begin, port.free) for reads in runs)
            if is_delayed:
                port.free, port.next = before
                waits = port.waits(rows, lane, alternate=is_alternate)
                cycles = self._follow(begin, self._first[number], waits, runs)
        if not is_delayed:
            self._left.extend(cycles[-WriterHardware.rows_ahead - 1 : -1])
            self._next_read = max(begin + rows, self._left[0] + self.credit + 1)
            self._left.append(cycles[-1])
        self._ask(taken, cycles if is_alternate else cycles[-1:])
        return taken, port.free + self._latency

    def _ask(self, cycle: int, ends: Sequence[int]) -> None:
        """Follow the requests of bursts whose last beats go in the cycles ``ends``; the next transfer is taken after
        the last request."""
        for end in ends:
            cycle = max(cycle, self._runs[0] + 1) + 1
            self._runs.append(end)
        self._asked = cycle

    def _load(self, place: int, taken: int) -> int:
        """Follow a Load_Weights that is taken in cycle ``taken``; returns the cycle in which it is finished."""
        number = self.numbers[place]
        begin = max(taken + self.first_read, self._next_read)
        self._port.free = max(self._port.free, self._turn[place])
        until = max(begin, self._port.free) + 2 * self._rows[number]
        with self._activation.foreseen(loads_alone=True), self._activation.fetching(until):
            reads, rows, first = self._every_read(), self._rows[number], self._first[number]
            self._follow(begin, first, [False] * (rows - 1), reads, self._weights.enter)
            # The last row waits until all transfers before are done.
            end = self._follow(self._next_read, first + rows - 1, [False], reads)[-1] + 1
            if place:
                end = max(end, self.done[place - 1] + 2)
            self._port.free = self._weights.enter(end)
        self._asked = taken
        self._runs.append(end - 1)
        self._loaded[place] = self._port.free
        return end

    def _every_read(self) -> tuple[Reads, ...]:
        """All reads of the unified buffer that may delay one of a row."""
        return self._reads.all, self._reads.loads, self._reads.elements

    def _fetching(self, until: int) -> AbstractContextManager[None]:
        """A context that knows the elements that the activation unit reads, where they delay rows of a transfer."""
        return nullcontext() if self._is_slow else self._activation.fetching(until)

    def _before(self) -> tuple[Reads, ...]:
        """The reads that delay rows of a transfer: of slow ones only those that stay in one bank, because waiting a
        single cycle costs nothing."""
        return (self._reads.held,) if self._is_slow else self._every_read()

    def _follow(
        self,
        cycle: int,
        row: int,
        waits: Sequence[bool],
        others: Sequence[Reads],
        enter: Callable[[int], int] = int,
    ) -> list[int]:
        """The cycles of the last beats of rows from ``row`` on, computed one by one from cycle ``cycle`` on; ``waits``
        has for each row whether it waits for a beat, ``others`` are reads that come before its own, and ``enter`` finds
        the cycle in which a row makes room for the next one, from the one behind its own on."""
        before, cycles = [reads for reads in others if reads.end > cycle], []
        for place, waits_for_beat in enumerate(waits, row):
            cycle = free_of_all(before, max(cycle, self._left[0] + self.credit), place % self._banks)
            cycles.append(self._port.row(cycle + self.read, waits_for_beat))
            self._left.append(cycles[-1])
            self._port.free = enter(self._port.free)
            cycle += 1
        self._next_read = cycle
        return cycles
