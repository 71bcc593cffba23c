"""The matrix unit: one row per cycle, pass after pass, and its stalls."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from openmxu.arch.isa import Unit
from openmxu.rtl.matrix.accumulators import Accumulators
from openmxu.sim.cycle_model.accumulators import Updates
from openmxu.sim.cycle_model.buffer_traffic import BufferReads
from openmxu.sim.cycle_model.latencies import Latencies
from openmxu.sim.cycle_model.unit import Comparison, InOrderUnit, Waits
from openmxu.sim.cycle_model.weights import Weights
from openmxu.sim.cycle_model.work import Work

__all__ = ["Matrix", "Stall"]

_PASSES = 4
"""Passes of an instruction, at most."""


class Stall(NamedTuple):
    """Cycles of the matrix unit's waits for one instruction.

    Attributes
    ----------
    weight_stall, weight_shift
        It waits for its tile to arrive in the FIFO, and to be shifted into the array.
    raw_stall, input_stall
        It waits for the activation unit, and for the host reader, and no older one has a row or waits for its tile.
    """

    weight_stall: int
    weight_shift: int
    raw_stall: int
    input_stall: int


class Matrix(InOrderUnit):
    """Executes MatrixMultiply and Convolve.

    Attributes
    ----------
    stalls
        For each instruction its waits.
    latency
        Cycles from the last row of an instruction to its end.
    """

    walk = 3
    """Cycles from taking a command to its first row's turn."""

    slot, behind, freed = 1, 2, 2
    """Cycles until an instruction is the scoreboard's next one, from getting a slot and from the start of the one
    before; and from the end of an instruction that it waits for until it does so no longer."""

    at_once = True

    def __init__(
        self,
        waits: Waits,
        work: Work,
        latencies: Latencies,
        weights: Weights,
        updates: Updates,
        reads: BufferReads,
    ) -> None:
        super().__init__(waits)
        self._weights, self._updates, self._reads = weights, updates, reads
        self.lead = latencies.sums_lead
        self._tag, self.latency = latencies.tag, latencies.tag + latencies.sums
        self._rows = work.rows.tolist()
        self._row = work.accumulators.first.tolist()
        self._accumulates = work.accumulates.tolist()
        self._takes_tiles = (work.tiles > 0).tolist()
        # For each pass of an instruction the byte of the inputs that it multiplies.
        self._bytes = [
            (0, 1)[: 1 + inputs] * (1 + weights)
            for inputs, weights in zip(work.wide_input.tolist(), work.wide_weights.tolist(), strict=True)
        ]
        # Passes whose rows may still be on their way to the accumulators: first cycle, first row, rows.
        self._recent: deque[tuple[int, int, int]] = deque(maxlen=Accumulators.update_latency - 1)
        # The first cycle for the next pass's first row, the first cycle in which the walker can take it, and the cycle
        # in which the last row of the pass before was next in turn.
        self._next = self._walker = self._entry = 0
        self.stalls: list[Stall] = []
        self._units = work.unit.tolist()
        self._started = -1
        # Cycles in which a row goes or waits for its tile, the second exclusive, of the passes that may still be under
        # way when the next instruction waits.
        self._occupied: deque[tuple[int, int]] = deque(maxlen=4 * _PASSES)

    def queue(self, number: int, cycle: int, compared: Comparison) -> None:
        super().queue(number, cycle, compared)
        # Computed at once: the array's accesses to memories delay those of other units, never the other way round.
        self.done_at(len(self.numbers) - 1)

    def _execute(self, place: int) -> tuple[int, int]:
        number = self.numbers[place]
        rows, row, accumulates = self._rows[number], self._row[number], self._accumulates[number]
        cycle = self._offered(place)
        raw_stall, input_stall = self._waits_for_others(number, cycle - 1)
        weight_stall = weight_shift = 0
        begun = -1
        for byte in self._bytes[number]:
            self._taken = cycle = max(cycle, self._walker)
            entry = turn = max(cycle + self.walk, self._next)
            takes_tile = byte == 0 and self._takes_tiles[number]
            if takes_tile:
                ready, shifts = self._weights.take(turn)
                shift = ready - min(ready, max(turn, shifts))
                weight_shift += shift
                weight_stall += ready - turn - shift
                if ready > turn:
                    self._occupied.append((turn, ready))
                turn = ready
            if accumulates:
                turn = self._settled(turn, row, rows)
                self._updates.add(turn + self._tag, rows, row)
            if takes_tile:
                self._weights.swap(turn)
            self._reads.add(number, turn, byte)
            self._occupied.append((turn, turn + rows))
            self._recent.append((turn, row, rows))
            self._next = turn + rows
            self._follow(cycle, entry, turn, rows)
            begun = turn if begun < 0 else begun
            accumulates = True
            cycle += 1
        self.stalls.append(Stall(weight_stall, weight_shift, raw_stall, input_stall))
        return begun, self._next - 1 + self.latency

    def _waits_for_others(self, number: int, start: int) -> tuple[int, int]:
        """The stalls of an instruction, which starts in cycle ``start``, because of the activation unit and of the host
        reader."""
        begin = max(self._entered + self.slot, self._started + self.behind)
        self._started = start
        ends = dict.fromkeys((Unit.ACTIVATION, Unit.HOST_READ), 0)
        for other in self._waits.of[number]:
            unit = Unit(self._units[other])
            ends[unit] = max(ends[unit], self._waits.done_at(other) + self.freed)
        return self._idle(begin, ends[Unit.ACTIVATION]), self._idle(begin, ends[Unit.HOST_READ])

    def _idle(self, begin: int, end: int) -> int:
        """Cycles from ``begin`` up to ``end`` in which no row goes or waits for its tile."""
        if end <= begin:
            return 0
        return end - begin - sum(max(0, min(end, last) - max(begin, first)) for first, last in self._occupied)

    def _follow(self, cycle: int, entry: int, turn: int, rows: int) -> None:
        """Compute when the walker, two stages ahead of the row in turn, has finished a pass."""
        if rows == 1:
            # Two more rows follow a waiting row in the pipeline.
            self._walker = max(cycle + self.walk - 1, self._entry) - 1
            self._entry = entry
        else:
            self._walker = (entry if rows == 2 else turn + rows - 2) - 1
            self._entry = turn + rows - 1

    def _settled(self, turn: int, row: int, rows: int) -> int:
        """The first cycle from ``turn`` on in which no row is added to one that is still being written."""
        for other, first, count in self._recent:
            if first < row + rows and row < first + count:
                turn = max(turn, other - first + row + Accumulators.update_latency)
        return turn
