"""A case: random programs with the memories that they start from."""

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
    """Programs for devices of one configuration whose memories and registers are as after power-on.

    Parameters
    ----------
    config
        Sizes of the devices.
    instructions
        One or more programs back to back, each ended by Halt. A program may fault: then the rest of it, its Halt
        included, is dropped.
    host_memory, weight_memory
        uint8 vectors, the contents before the first instruction; whoever runs the case works on copies.
    seed
        What the case was generated from, for the report.
    separate
        Whether each program is a call of ``execute``, after which everything is compared, rather than as many as run
        without a fault.
    """

    config: Config
    instructions: tuple[Instruction, ...]
    host_memory: NDArray[np.uint8]
    weight_memory: NDArray[np.uint8]
    seed: int
    separate: bool = False

    def checker(self) -> LegalityChecker:
        """A legality checker at the case's beginning, with the windows of its memories."""
        return LegalityChecker(self.config, Window(0, self.host_memory.size), Window(0, self.weight_memory.size))

    def outcomes(self) -> Iterator[tuple[Instruction, FaultCode | None]]:
        """Every instruction with the fault that it raises; ``None`` for those that an earlier fault drops."""
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
        """The instructions of each call of ``execute``: as many programs as run without a fault, or end in one.

        If ``separate``, it is one program.
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
