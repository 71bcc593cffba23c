"""The core as a whole: the dispatcher, and the units that receive its instructions."""

from __future__ import annotations

import numpy as np

from openmxu.arch.isa import Opcode, Unit
from openmxu.rtl.dispatch import scoreboard
from openmxu.sim.cycle_model.accumulators import AccumulatorReads, Updates
from openmxu.sim.cycle_model.activation import Activation
from openmxu.sim.cycle_model.buffer_traffic import BufferReads
from openmxu.sim.cycle_model.host import HostReader, HostWriter
from openmxu.sim.cycle_model.latencies import Latencies, Memories
from openmxu.sim.cycle_model.matrix import Matrix
from openmxu.sim.cycle_model.unit import Comparison, Dependences, InOrderUnit, Waits
from openmxu.sim.cycle_model.weights import Weights
from openmxu.sim.cycle_model.work import Work

__all__ = ["Machine"]

_EVENT = {Opcode.DEBUG_TAG: 2, Opcode.INTERRUPT_HOST: 2, Opcode.HOST_SYNCHRONIZE: 5}
"""Cycles of an event to the host, which acknowledges at once where required."""

_HALT = 3
"""Cycles from the end of a program to the first instruction of the next one."""

_DRAINED = 1
"""Cycles until dispatch sees that all units have finished."""

_FLUSHED = 1
"""Cycles in which dispatch flushes the queued tiles and sees that none are left."""

_SEEN = 4
"""Cycles from the last cycle of an instruction until dispatch that waited for it continues."""


class Machine:
    """Follows the instructions of a program in the order of dispatch.

    Attributes
    ----------
    programs
        For each program the cycles from its first instruction to the end of its Halt.
    accepted
        For each instruction the cycle in which it is handed to its unit, or done by the dispatcher.
    matrix
        The matrix unit.
    """

    def __init__(self, work: Work, dependences: Dependences, memories: Memories) -> None:
        self._work = work
        self._depth = work.config.command_queue_depth
        latencies = Latencies.of(work.config, memories)
        waits = Waits(dependences.conflicts)
        self._in_question = dependences.in_question
        updates, reads = Updates(), BufferReads(work)
        activation = Activation(waits, work, latencies, AccumulatorReads(work, updates), reads)
        self._weights = Weights(work.config, latencies, has_loads=bool(work.loads_weights.any()))
        self.matrix = Matrix(waits, work, latencies, self._weights, updates, reads)
        self._units: dict[int, InOrderUnit] = {
            Unit.HOST_READ: HostReader(waits, work, latencies, activation),
            Unit.HOST_WRITE: HostWriter(waits, work, latencies, activation, reads, self._weights),
            Unit.MATRIX: self.matrix,
            Unit.ACTIVATION: activation,
        }
        self.accepted: list[int] = []
        self.programs: list[int] = []

    def run(self) -> None:
        """Follow all instructions."""
        work = self._work
        opcodes, units, tiles = work.words.opcode.tolist(), work.unit.tolist(), work.tiles.tolist()
        synchronized = work.synchronized.tolist()
        begin = cycle = 0  # cycles that take the program's first and the next instruction
        for number, check in enumerate(work.check_cycles.tolist()):
            accepted, opcode, unit = cycle + check, opcodes[number], units[number]
            if unit == Unit.WEIGHT:
                accepted = max(accepted, self._weights.room())
                self._weights.queue(tiles[number], accepted)
            elif unit >= 0:
                accepted = self._queue(self._units[unit], number, accepted)
            elif opcode == Opcode.SYNCHRONIZE:
                accepted = self._finished(synchronized[number], accepted)
            elif opcode in (Opcode.HOST_SYNCHRONIZE, Opcode.INTERRUPT_HOST):
                accepted = self._weights.settled(max(accepted, self._idle(), self._written())) + _DRAINED
            elif opcode == Opcode.HALT:
                drained = self._weights.drained(max(accepted + 1, self._idle()))
                accepted = max(drained, self._written()) + _FLUSHED
                self.programs.append(accepted - begin)
                begin = accepted + _HALT
            self.accepted.append(accepted)
            cycle = begin if opcode == Opcode.HALT else accepted + _EVENT.get(opcode, 0) + 1

    def times(self) -> tuple[list[int], list[int]]:
        """For each instruction the cycles in which it begins to execute and in which it is finished."""
        begun, done = list(self.accepted), list(self.accepted)
        for unit in self._units.values():
            for number, begin, end in zip(unit.numbers, unit.begun, unit.done, strict=True):
                begun[number], done[number] = begin, end
        weights = np.flatnonzero(self._work.words.is_(Opcode.READ_WEIGHTS)).tolist()
        for number, begin, end in zip(weights, self._weights.begun, self._weights.done, strict=True):
            begun[number], done[number] = begin, end
        return begun, done

    def _queue(self, unit: InOrderUnit, number: int, cycle: int) -> int:
        """Hand over an instruction as soon as its unit's queue has room; returns the cycle."""
        older = [(self._units[other], len(self._units[other].numbers)) for other in self._in_question[number]]
        compared = Comparison(cycle, older, scoreboard.ways(self._depth))
        behind = len(unit.numbers) - self._depth
        if behind >= 0:
            cycle = max(cycle, unit.done_at(behind) + _SEEN)
        unit.queue(number, cycle, compared)
        return cycle

    def _finished(self, units: int, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which all units of a Synchronize have finished."""
        waited = (unit.last_done() + _SEEN for number, unit in self._units.items() if units >> number & 1)
        cycle = max(cycle, *waited, 0)
        return self._weights.settled(cycle - 2) + 2 if units >> Unit.WEIGHT & 1 else cycle

    def _idle(self) -> int:
        """The cycle in which all units have finished."""
        return 2 + max(unit.last_done() for unit in self._units.values())

    def _written(self) -> int:
        """The cycle in which everything is written that units have computed."""
        return 1 + max(unit.last_written() for unit in self._units.values())
