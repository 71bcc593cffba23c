"""What the units with a queue have in common: they execute their instructions in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

__all__ = ["InOrderUnit", "Waits"]


class Waits:
    """What instructions wait for.

    Parameters
    ----------
    of
        For each instruction of a program the older ones that are in its way.
    """

    def __init__(self, of: Sequence[Sequence[int]]) -> None:
        self.of = of
        self.place: dict[int, tuple[InOrderUnit, int]] = {}
        """For each instruction that is queued its unit, and its number there."""

    def done_at(self, number: int) -> int:
        """The cycle in which instruction ``number`` is finished."""
        unit, place = self.place[number]
        return unit.done_at(place)

    def is_known(self, number: int) -> bool:
        """Whether it has been worked out already when instruction ``number`` is finished."""
        unit, place = self.place[number]
        return place < len(unit.done)


class InOrderUnit(ABC):
    """Works out when instructions are finished, one after the other, when somebody asks.

    That is soon enough, and not too soon: who asks goes on behind the instruction's end, so that everything that may
    get in its way is queued by then.

    Attributes
    ----------
    numbers
        Of the instructions that have been queued, in the program.
    accepted
        For each of them the cycle of its hand-over.
    begun, done
        For each of them that has been worked out the cycle in which it begins to do something, and that in which it is
        finished.
    """

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self.numbers: list[int] = []
        self.accepted: list[int] = []
        self.begun: list[int] = []
        self.done: list[int] = []
        self._taken = -1

    def queue(self, number: int, cycle: int) -> None:
        """The dispatcher hands over instruction ``number`` of the program."""
        self._waits.place[number] = (self, len(self.numbers))
        self.numbers.append(number)
        self.accepted.append(cycle)

    def done_at(self, place: int) -> int:
        """The cycle in which the unit's instruction number ``place`` is finished."""
        while len(self.done) <= place:
            self._work_out()
        return self.done[place]

    def _work_out(self) -> None:
        """Go on with one instruction."""
        begun, done = self._execute(len(self.done))
        self.begun.append(begun)
        self.done.append(done)

    def last_done(self) -> int:
        """The cycle in which everything that is queued is finished; -1 where there is nothing."""
        return self.done_at(len(self.numbers) - 1) if self.numbers else -1

    def _offered(self, place: int) -> int:
        """The cycle from which on the unit may take an instruction, because it waits for nothing any more."""
        # From the queue to a register before the unit, when the command before has left that. The scoreboard knows two
        # cycles later that what was in the way has ended.
        start = max(self.accepted[place], self._taken) + 1
        for other in self._waits.of[self.numbers[place]]:
            start = max(start, self._waits.done_at(other) + 2)
        return start + 1

    @abstractmethod
    def _execute(self, place: int) -> tuple[int, int]:
        """When instruction number ``place`` begins and is finished, and in ``_taken`` when it leaves its register."""
