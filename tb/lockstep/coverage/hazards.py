"""Coverage of instructions that may be in flight together: hazards, adjacent ranges, registers between two users."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.effects import (
    ACTION_EFFECTS,
    EFFECTS,
    Access,
    Memory,
    Role,
    accesses,
    table_rows,
    unit_of,
    used_registers,
)
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Register, Unit
from tb.lockstep.coverage.bins import Bin, have_load_weights
from tb.lockstep.programs.steps import Step

__all__ = ["HAZARDS", "REGISTERS_BETWEEN", "TOUCHES", "Hazards"]

HAZARDS = "hazards"
TOUCHES = "ranges that touch"
REGISTERS_BETWEEN = "registers written between two users"

_NEAR = 8
"""Maximum distance of two instructions that are considered as in flight together."""

_BARRIERS = (Opcode.HALT, Opcode.HOST_SYNCHRONIZE, Opcode.INTERRUPT_HOST)
"""Instructions that wait for all units."""

_EFFECTS = [effect for effects in (*EFFECTS.values(), *ACTION_EFFECTS.values()) for effect in effects]


def _roles(*, writes: bool) -> dict[Memory, tuple[Role, ...]]:
    """The roles of accesses that write, or read, each memory."""
    touching = [effect for effect in _EFFECTS if effect.writes == writes]
    return {memory: tuple(dict.fromkeys(e.role for e in touching if e.memory is memory)) for memory in Memory}


_WRITERS, _READERS = _roles(writes=True), _roles(writes=False)
_WIDTHS = {
    Role.MATRIX_MULTIPLY: (1, 2),
    Role.CONVOLVE: (1, 2),
    Role.SOURCE: (1, 2),
    Role.OPERAND: (1, 2),
    Role.RESULT: (1, 2, 4),
}
"""Numbers of unified buffer rows that an input, an element or a result may have."""

_SPATIAL = (Memory.UNIFIED_BUFFER, Memory.ACCUMULATORS, Memory.HOST)
"""Memories in which ranges of different instructions may be adjacent, and could be confused."""


@dataclass(frozen=True)
class _Recent:
    instruction: Instruction
    unit: Unit | None
    accesses: list[Access]
    uses: set[Register]

    def writes_register(self, register: Register) -> bool:
        instruction = self.instruction
        return instruction.opcode is Opcode.SET_CONFIGURATION and instruction["register"] == register


class Hazards:
    """Observes hazards in a case."""

    def __init__(self, config: Config) -> None:
        self._depth = config.command_queue_depth
        self._recent: deque[_Recent] = deque(maxlen=_NEAR)

    @staticmethod
    def declared(configs: Sequence[Config]) -> dict[str, list[str]]:
        """All bins: every kind of hazard between every two accesses to the same memory."""
        lacks = set()
        if all(table_rows(config.size) > config.unified_buffer_rows for config in configs):
            lacks.add(Role.LOAD_TABLE)
        if not have_load_weights(configs):
            lacks.add(Role.LOAD_WEIGHTS)
        users = [register.name for register in Register if not register.name.startswith("LOAD_")]
        return {
            HAZARDS: [_name(*pair) for memory in Memory for pair in _pairs(memory, lacks)],
            TOUCHES: [_name(*pair) for memory in _SPATIAL for pair in _pairs(memory, lacks)],
            REGISTERS_BETWEEN: users,
        }

    def observe(self, step: Step) -> Iterator[Bin]:
        """The bins hit by an instruction together with those before it."""
        instruction = step.instruction
        if step.fault is not FaultCode.NONE or step.opcode in _BARRIERS:
            self._recent.clear()
            return
        new = _Recent(
            instruction,
            unit_of(instruction),
            accesses(instruction, step.state.registers, step.state.config),
            used_registers(instruction),
        )
        for older in self._in_flight(step):
            yield from _meetings(older, new)
        yield from self._between(new)
        self._recent.append(new)

    def _in_flight(self, step: Step) -> Iterator[_Recent]:
        """Preceding instructions that may not have finished when this one is dispatched."""
        behind = dict.fromkeys(Unit, 0)
        waited: set[Unit] = set()
        for older in reversed(self._recent):
            if older.instruction.opcode is Opcode.SYNCHRONIZE:
                waited |= {unit for unit in Unit if older.instruction["units"] >> unit & 1}
            if older.unit is None or older.unit in waited:
                continue
            if behind[older.unit] < self._depth:
                yield older
            behind[older.unit] += 1

    def _between(self, new: _Recent) -> Iterator[Bin]:
        for register in new.uses:
            written = False
            for older in reversed(self._recent):
                if written and register in older.uses:
                    yield REGISTERS_BETWEEN, register.name
                    break
                written = written or older.writes_register(register)


def _pairs(memory: Memory, lacks: set[Role]) -> Iterator[tuple[Memory, str, str, str]]:
    """All possible hazards in a memory: memory, kind, and names of the older and the younger access."""

    def parts(roles: Iterable[Role]) -> list[str]:
        known = [role for role in roles if role not in lacks]
        widths = _WIDTHS if memory is Memory.UNIFIED_BUFFER else {}
        return [_part(role, each) for role in known for each in widths.get(role, (1,))]

    writers, readers = parts(_WRITERS[memory]), parts(_READERS[memory])
    # A multiplication that accumulates writes the rows that it reads, so it counts as write after write.
    first_readers = [_part(Role.SOURCE, 1)] if memory is Memory.ACCUMULATORS else readers
    yield from ((memory, "read after write", older, younger) for older in writers for younger in readers)
    yield from ((memory, "write after read", older, younger) for older in first_readers for younger in writers)
    yield from ((memory, "write after write", older, younger) for older in writers for younger in writers)


def _part(role: Role, rows_each: int) -> str:
    return role.value if rows_each == 1 else f"{role.value} of {8 * rows_each} bits"


def _name(memory: Memory, kind: str, older: str, younger: str) -> str:
    return f"{memory.value}: {kind}: {older}, then {younger}"


def _meetings(older: _Recent, new: _Recent) -> Iterator[Bin]:
    for old in older.accesses:
        for young in new.accesses:
            if old.memory is not young.memory or not (old.writes or young.writes):
                continue
            kind = _kind(old, young)
            if kind == "write after read" and old.memory is Memory.ACCUMULATORS and old.role is not Role.SOURCE:
                continue
            name = _name(old.memory, kind, _part(old.role, old.rows_each), _part(young.role, young.rows_each))
            if old.first < young.end and young.first < old.end:
                yield HAZARDS, name
            elif old.memory in _SPATIAL and (old.first == young.end or young.first == old.end):
                yield TOUCHES, name


def _kind(old: Access, young: Access) -> str:
    if old.writes and young.writes:
        return "write after write"
    return "read after write" if old.writes else "write after read"
