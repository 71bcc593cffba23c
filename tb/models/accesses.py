"""The ranges that an instruction of a program touches, in the format of the scoreboard's bench."""

from __future__ import annotations

from openmxu.arch.effects import Memory, Role, accesses, unit_of
from openmxu.arch.isa import REGISTERS, Instruction, Unit
from openmxu.arch.legality import LegalityChecker
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.models.hazards import Access

__all__ = ["access_of", "configuration"]

_BESIDES = {Role.SOURCE: "source", Role.OPERAND: "operand"}
"""Members of :class:`Access` for the unified buffer rows that Activate reads, in addition to those that it writes."""


def configuration(checker: LegalityChecker) -> dict[str, dict[str, int]]:
    """The configuration registers as set by the program, by name."""
    return {
        register.name.lower(): checker.register(register.number) for register in REGISTERS if not register.is_action
    }


def access_of(instruction: Instruction, checker: LegalityChecker) -> Access | None:
    """Ranges that a legal instruction touches, or ``None`` if no unit with a command queue executes it."""
    unit = unit_of(instruction)
    if unit is None or unit is Unit.WEIGHT:
        return None
    ranges: dict[str, range] = {}
    writes = False
    for access in accesses(instruction, checker.registers, checker.config):
        rows = range(access.first, access.end)
        if access.memory is Memory.ACCUMULATORS:
            ranges["accumulators"] = rows
        elif access.memory is Memory.HOST:
            ranges["host"] = rows
        elif access.memory is Memory.UNIFIED_BUFFER:
            ranges[_BESIDES.get(access.role, "unified_buffer")] = rows
            writes |= access.writes
    return Access(QueuedUnit[unit.name], writes=writes, **ranges)
