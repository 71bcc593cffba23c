"""The common base of units with a queue: they execute their instructions in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import UNITS, Unit
from openmxu.sim.cycle_model.work import Work

__all__ = ["Comparison", "Dependences", "InOrderUnit", "Waits"]


_SHORT = 34
"""Estimated cycles in flight of an instruction whose end is not computed yet."""


class Waits:
    """Dependences between instructions.

    Parameters
    ----------
    of
        For each instruction of a program the older ones that it waits for.
    """

    def __init__(self, of: Sequence[Sequence[int]]) -> None:
        self.of = of
        self.place: dict[int, tuple[InOrderUnit, int]] = {}
        """For each queued instruction its unit, and its number there."""

    def done_at(self, number: int) -> int:
        """The cycle in which instruction ``number`` is finished."""
        unit, place = self.place[number]
        return unit.done_at(place)

    def is_known(self, number: int) -> bool:
        """Whether the end of instruction ``number`` has been computed."""
        unit, place = self.place[number]
        return place < len(unit.done)


@dataclass(frozen=True)
class Comparison:
    """The scoreboard's comparison of a new instruction with older ones: all units in parallel, the youngest first.

    Attributes
    ----------
    checked
        The cycle in which the instruction is handed over, if there is room.
    older
        The units to compare with, and the number of instructions that each has received.
    ways
        Instructions of each unit that are compared per cycle.
    """

    checked: int
    older: Sequence[tuple[InOrderUnit, int]]
    ways: int

    def end(self, *, unknown: bool) -> int:
        """The first cycle in which it may start: two steps of the comparison take no time. ``unknown``: all
        instructions whose end is not computed yet count as in flight."""
        for late in (1, 2):
            cycle = self.checked - 2 + late
            place = (late + 1) * self.ways + 1
            for unit, count in self.older:
                if unit.is_in_flight(count - place, cycle, unknown):
                    break
            else:
                return self.checked + late - 1
        return self.checked + 2


class InOrderUnit(ABC):
    """Computes the begin and end of instructions in order, on demand.

    That is the right time: the caller continues after the instruction's end, so that everything that may delay it is
    queued by then.

    Attributes
    ----------
    numbers
        Positions in the program of the queued instructions.
    accepted
        For each of them the cycle of its hand-over.
    begun, done
        For each instruction computed so far the cycle in which it begins to execute, and the one in which it is
        finished.
    """

    lead = 0
    """Cycles from the end of an instruction until all that it computed is written."""

    at_once = False
    """Whether instructions are computed when they are queued, when the ends of many others are still unknown."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self.numbers: list[int] = []
        self.accepted: list[int] = []
        self.begun: list[int] = []
        self.done: list[int] = []
        self._taken = -1
        self._entered = -1  # the cycle in which the last instruction that was offered got its slot
        self._compared: list[Comparison] = []

    def queue(self, number: int, cycle: int, compared: Comparison) -> None:
        """The dispatcher hands over instruction ``number`` of the program."""
        self._waits.place[number] = (self, len(self.numbers))
        self.numbers.append(number)
        self.accepted.append(cycle)
        self._compared.append(compared)

    def is_in_flight(self, place: int, cycle: int, unknown: bool) -> bool:
        """Whether instruction number ``place`` is not finished before ``cycle``. If its end is not computed yet, it
        counts as in flight if ``unknown`` is set, if it was handed over shortly before, or if it cannot have finished
        since it was handed over or since an older one finished.
        """
        if place < len(self.done):
            return place >= 0 and self.done[place] >= cycle
        if unknown or self.accepted[place] >= cycle - _SHORT:
            return True
        return self.soonest_end(place, {}, cycle) >= cycle

    def soonest_end(self, place: int, found: dict[int, int], enough: int) -> int:
        """A cycle before which the unit's instruction number ``place`` is not finished; exact if that is known.

        ``found`` collects the cycles of instructions whose end is not known, so that each is worked out once however
        many others wait for it. The search ends with the first cycle that is ``enough`` or later.
        """
        known = len(self.done)
        if place < known:
            return self.done[place]
        end = self.done[-1] if known else 0
        for unfinished in range(known, place + 1):
            if end >= enough:
                break
            number = self.numbers[unfinished]
            if number not in found:
                start = self.accepted[unfinished]
                for other in self._waits.of[number]:
                    unit, other_place = self._waits.place[other]
                    before = unit.soonest_end(other_place, found, enough)
                    if before >= enough:
                        return before
                    start = max(start, before + 1)
                found[number] = self._soonest(unfinished, start, end, found)
            end = found[number]
        return end

    def done_at(self, place: int) -> int:
        """The cycle in which the unit's instruction number ``place`` is finished."""
        while len(self.done) <= place:
            self._work_out()
        return self.done[place]

    def _work_out(self) -> None:
        """Compute the next instruction."""
        begun, done = self._execute(len(self.done))
        self.begun.append(begun)
        self.done.append(done)

    def last_done(self) -> int:
        """The cycle in which all queued instructions are finished; -1 if there are none."""
        return self.done_at(len(self.numbers) - 1) if self.numbers else -1

    def last_written(self) -> int:
        """The cycle in which all that queued instructions compute is written; -1 if there are none."""
        return self.last_done() + self.lead if self.numbers else -1

    def _offered(self, place: int) -> int:
        """The first cycle in which the unit may take an instruction, with all waits over."""
        # It moves from the queue to a register before the unit once the previous command has left that. The scoreboard
        # sees the end of a conflicting instruction two cycles later.
        self._entered = max(self.accepted[place], self._compared[place].end(unknown=not self.at_once))
        start = max(self._entered, self._taken) + 1
        for other in self._waits.of[self.numbers[place]]:
            start = max(start, self._waits.done_at(other) + 2)
        return start + 1

    def _soonest(self, place: int, accepted: int, before: int, found: Mapping[int, int]) -> int:
        """The earliest end of the unit's instruction number ``place``, handed over in cycle ``accepted``, or waiting up
        to then; the one before it ends in cycle ``before``, and those before that as ``found`` says, if that is not
        known."""
        return max(accepted, before)

    @abstractmethod
    def _execute(self, place: int) -> tuple[int, int]:
        """The begin and end of instruction number ``place``; sets ``_taken`` to the cycle in which it leaves its
        register."""


@dataclass(frozen=True)
class Dependences:
    """What the scoreboard finds out about each instruction of a program, whatever the latency of the memories.

    Attributes
    ----------
    conflicts
        The older instructions that it waits for.
    in_question
        The units whose instructions it is compared with.
    """

    conflicts: Sequence[Sequence[int]]
    in_question: Sequence[tuple[Unit, ...]]

    @classmethod
    def of(cls, work: Work) -> Dependences:
        """Those of a program."""
        return cls(_conflicts(work), _in_question(work))


def _in_question(work: Work) -> list[tuple[Unit, ...]]:
    """For each instruction the units whose instructions the scoreboard compares it with."""
    results = (Unit.HOST_READ, Unit.HOST_WRITE, Unit.MATRIX)
    found: list[tuple[Unit, ...]] = []
    reads = (work.from_unified_buffer | work.has_operand).tolist()
    for unit, activates, reads_rows in zip(work.unit.tolist(), work.is_activate.tolist(), reads, strict=True):
        if unit == Unit.HOST_READ:
            found.append((Unit.HOST_WRITE, Unit.MATRIX, Unit.ACTIVATION))
        elif activates:
            found.append((*results, Unit.ACTIVATION) if reads_rows else results)
        else:
            found.append((Unit.HOST_READ, Unit.ACTIVATION))
    return found


_HOST = (Unit.HOST_READ, Unit.HOST_WRITE)


def _conflicts(work: Work) -> list[list[int]]:
    """For each instruction the older ones that touch the same rows or bytes, if either of the two writes them.

    Only instructions that may be in flight together count: as many of each unit as its queue is deep.
    """
    found: list[list[int]] = [[] for _ in range(len(work.words))]
    everything = np.flatnonzero((work.unit >= 0) & (work.unit != Unit.WEIGHT))
    for unit in UNITS:
        if unit is Unit.WEIGHT:
            continue
        theirs = np.flatnonzero(work.unit == unit)
        before = np.searchsorted(theirs, everything)
        for distance in range(1, work.config.command_queue_depth + 1):
            place = before - distance
            new, held = everything[place >= 0], theirs[place[place >= 0]]
            waits = _conflict(work, unit, new, held)
            for index, other in zip(new[waits].tolist(), held[waits].tolist(), strict=True):
                found[index].append(other)
    return found


def _conflict(work: Work, unit: Unit, new: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether instructions ``new`` have to wait for ``held``, which are for ``unit``."""
    buffer = work.unified_buffer
    overlap = buffer.meets(new, buffer, held)
    reads_written = np.zeros(len(new), np.bool_)
    if unit in (Unit.HOST_READ, Unit.ACTIVATION):
        for read in (work.source, work.operand):
            reads_written |= read.meets(new, buffer, held) & work.writes[held]
    is_own = work.unit[new] == unit
    meets = (work.writes[new] | work.writes[held]) & overlap
    if unit in (Unit.MATRIX, Unit.ACTIVATION):
        meets |= work.accumulators.meets(new, work.accumulators, held)
    if unit in _HOST:
        meets |= work.host.meets(new, work.host, held)
    if unit is Unit.ACTIVATION:
        for read in (work.source, work.operand):
            meets |= work.writes[new] & buffer.meets(new, read, held)
        # The activation unit reads ahead of its own writes.
        loads_written = work.writes[held] & ~work.writes[new] & overlap
        return np.where(is_own, reads_written | loads_written, meets | reads_written)
    return ~is_own & (meets | reads_written)
