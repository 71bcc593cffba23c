"""Models of the units behind the command queues: they take commands, are busy for some time, and finish in order."""

from __future__ import annotations

import random
from collections import deque

from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import Agent, Bench
from tb.models.hazards import Access, conflict

__all__ = ["Units"]


class Units(Agent):
    """Four units that only take time, and check that no command starts too early.

    Parameters
    ----------
    stall
        Probability in each cycle that a unit does not take a command, and that it does not finish one.

    Attributes
    ----------
    received
        Payloads of the commands that each unit has taken.
    finished
        Number of finished commands.
    """

    def __init__(self, bench: Bench, stall: float) -> None:
        self._bench = bench
        self._stall = stall
        self._done = bench.port("done")
        self._program: list[tuple[int, Access]] = []  # number and access of every unfinished instruction
        self._queued: dict[QueuedUnit, deque[int]] = {unit: deque() for unit in QueuedUnit}
        self._running: dict[QueuedUnit, deque[int]] = {unit: deque() for unit in QueuedUnit}
        self._count = self.finished = 0
        self._finishing: list[QueuedUnit] = []
        self.received: dict[QueuedUnit, list[int]] = {unit: [] for unit in QueuedUnit}
        bench.add(self)
        for unit in QueuedUnit:
            bench.sink(
                unit.name.lower(),
                stall,
                on_transfer=lambda payload, unit=unit: self._start(unit, payload),
                may_take=lambda unit=unit: len(self._running[unit]) < 3,
            )

    def expect(self, access: Access) -> None:
        """Announce the next instruction in program order."""
        self._queued[access.unit].append(self._count)
        self._program.append((self._count, access))
        self._count += 1

    @property
    def is_idle(self) -> bool:
        """Whether all expected instructions have finished."""
        return not self._program

    def _start(self, unit: QueuedUnit, payload: int) -> None:
        assert self._queued[unit], f"{unit.name} got an unexpected command"
        number = self._queued[unit].popleft()
        access = dict(self._program)[number]
        early = [older for older, other in self._program if older < number and conflict(other, access)]
        assert not early, f"instruction {number} started in cycle {self._bench.cycle} before {early} finished"
        self._running[unit].append(number)
        self.received[unit].append(payload)

    def sample(self) -> None:
        gone = {self._running[unit].popleft() for unit in self._finishing}
        self._program = [(number, access) for number, access in self._program if number not in gone]
        self.finished += len(gone)

    def drive(self) -> None:
        self._finishing = [unit for unit in QueuedUnit if self._running[unit] and random.random() >= self._stall]
        self._done.value = sum(1 << unit.value for unit in self._finishing)
