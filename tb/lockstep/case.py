"""A case: random programs with the initial contents of their memories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, format_named
from openmxu.arch.legality import LegalityChecker, Window

__all__ = ["HALT", "Case"]

HALT = format_named("Halt")()


@dataclass(frozen=True, eq=False)
class Case:
    """Programs for a device whose memories and registers are in the state after power-on.

    Parameters
    ----------
    config
        Configuration of the device.
    instructions
        One or more programs, one after the other, each ended by Halt. If one faults, the rest of it, including its
        Halt, is dropped.
    host_memory, weight_memory
        uint8 vectors, the contents before the first instruction; cases are run on copies.
    seed
        Seed from which the case was generated, for the report.
    separate
        Whether each program is executed and compared by itself. Otherwise a call of ``execute`` takes as many programs
        as run without a fault.
    """

    config: Config
    instructions: tuple[Instruction, ...]
    host_memory: NDArray[np.uint8]
    weight_memory: NDArray[np.uint8]
    seed: int
    separate: bool = False

    def checker(self) -> LegalityChecker:
        """A legality checker in the initial state of the case, with the windows of its memories."""
        return LegalityChecker(self.config, Window(0, self.host_memory.size), Window(0, self.weight_memory.size))

    def outcomes(self) -> Iterator[tuple[Instruction, FaultCode | None]]:
        """Every instruction with its fault code; ``None`` for instructions that an earlier fault drops."""
        checker = self.checker()
        faulted = False
        for instruction in self.instructions:
            if faulted:
                yield instruction, None
                faulted = instruction != HALT
                continue
            fault = checker.check(instruction)
            yield instruction, fault
            if fault is not FaultCode.NONE:
                checker.begin_program()
                faulted = True

    def executions(self) -> list[tuple[Instruction, ...]]:
        """The instructions of each call of ``execute``: all programs up to and including the next one that faults.

        If ``separate``, each call gets one program.
        """
        executions: list[tuple[Instruction, ...]] = []
        current: list[Instruction] = []
        for instruction, fault in self.outcomes():
            current.append(instruction)
            if instruction == HALT and (fault is None or self.separate):
                executions.append(tuple(current))
                current = []
        if current:
            executions.append(tuple(current))
        return executions

    def faults(self) -> list[tuple[Instruction, FaultCode]]:
        """The instructions that fault, each with its fault."""
        return [(instruction, fault) for instruction, fault in self.outcomes() if fault]

    def with_instructions(self, instructions: Iterable[Instruction]) -> Case:
        """The same case with other instructions."""
        return dataclasses.replace(self, instructions=tuple(instructions))
