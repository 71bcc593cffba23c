"""The instructions of a case, each with the state before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Register
from openmxu.arch.legality import LegalityChecker
from tb.lockstep.case import HALT, Case

__all__ = ["Step", "steps"]


@dataclass(frozen=True)
class Step:
    """An instruction that is executed or faults.

    Attributes
    ----------
    state
        The state before the instruction. It is only valid until the next step.
    fault
        ``NONE`` if the instruction is legal.
    execution
        Number of the call of ``execute``; see :meth:`Case.executions`.
    """

    instruction: Instruction
    state: LegalityChecker
    fault: FaultCode
    execution: int

    @cached_property
    def opcode(self) -> Opcode | None:
        """The opcode; ``None`` if it is unknown."""
        return self.instruction.opcode

    @cached_property
    def values(self) -> dict[str, int]:
        """The fields of the instruction."""
        return self.instruction.values

    def register(self, register: Register) -> dict[str, int]:
        """The fields of a configuration register before the instruction."""
        return self.state.register(register)


def steps(case: Case) -> Iterator[Step]:
    """Every instruction of a case except those that a fault drops."""
    state = case.checker()
    faulted = False
    execution = 0
    for instruction in case.instructions:
        if faulted:
            faulted = instruction != HALT
            execution += not faulted
            continue
        fault = state.fault(instruction)
        yield Step(instruction, state, fault, execution)
        execution += case.separate and instruction == HALT
        if fault is FaultCode.NONE:
            state.advance(instruction)
        else:
            faulted = True
            state.begin_program()
