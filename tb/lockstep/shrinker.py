"""Shrinks a failing case: delta debugging over instructions that keeps every program legal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction
from tb.lockstep.case import HALT, Case

__all__ = ["shrink"]

Predicate = Callable[[Case], bool]

SHRINKABLE_FIELDS = ("rows", "tiles", "height", "width")
"""Instruction fields that are counts of at least 1; smaller values make a program easier to understand."""

MODE_FIELDS = (
    "accumulate",
    "wide_input",
    "wide_weights",
    "from_unified_buffer",
    "table",
    "table_number",
    "pooling",
    "operand",
)
"""Instruction fields that are 0 in the simplest instruction."""


def shrink(case: Case, predicate: Predicate, *, attempts: int = 2000) -> Case:
    """The smallest case found for which ``predicate`` still holds.

    Parameters
    ----------
    case
        A case for which ``predicate`` holds.
    predicate
        Whether a case still fails. It is called with cases whose instructions are a subset of those of ``case``, some
        with smaller counts or fewer modes; no instruction faults that did not fault in ``case``.
    attempts
        Maximum number of calls of ``predicate``.

    Raises
    ------
    ValueError
        ``predicate`` does not hold for ``case``.
    """
    if not predicate(case):
        raise ValueError("the case does not fail, so there is nothing to shrink")
    return _Shrinker(case, predicate, attempts).run()


class _Shrinker:
    def __init__(self, case: Case, predicate: Predicate, attempts: int) -> None:
        self._best = case
        self._predicate = predicate
        self._left = attempts
        self._faults = set(case.faults())

    def run(self) -> Case:
        before = None
        while before != self._best.instructions:
            before = self._best.instructions
            self._remove_chunks()
            self._simplify()
        return self._best

    def _remove_chunks(self) -> None:
        chunk = len(self._best.instructions)
        while chunk:
            start = 0
            while start < len(self._best.instructions):
                instructions = self._best.instructions
                if not self._try([*instructions[:start], *instructions[start + chunk :]]):
                    start += chunk
            chunk //= 2

    def _simplify(self) -> None:
        position = 0
        while position < len(self._best.instructions):
            instructions = self._best.instructions
            for simpler in _simpler(instructions[position]):
                if self._try([*instructions[:position], simpler, *instructions[position + 1 :]]):
                    break
            else:
                position += 1

    def _try(self, instructions: Iterable[Instruction]) -> bool:
        """Make ``instructions``, after repair, the best case if they still fail; returns whether they do."""
        candidate = self._repaired(instructions)
        if candidate is None or self._left == 0:
            return False
        self._left -= 1
        if not self._predicate(candidate):
            return False
        self._best = candidate
        return True

    def _repaired(self, instructions: Iterable[Instruction]) -> Case | None:
        """A case without those instructions that raise new faults; ``None`` if it is not smaller than the best one."""
        kept: list[Instruction] = []
        checker = self._best.checker()
        faulted = False
        for instruction in instructions:
            if not faulted:
                fault = checker.check(instruction)
                if fault is not FaultCode.NONE:
                    if (instruction, fault) not in self._faults:
                        continue
                    checker.begin_program()
                    faulted = True
            kept.append(instruction)
            faulted = faulted and instruction != HALT
        if not kept or kept[-1] != HALT:
            kept.append(HALT)
        if _weight(kept) >= _weight(self._best.instructions):
            return None
        return self._best.with_instructions(kept)


def _weight(instructions: Iterable[Instruction]) -> tuple[int, int]:
    """Size for shrinking: number of instructions first, then the sum of their counts and modes."""
    instructions = list(instructions)
    return len(instructions), sum(count for instruction in instructions for _, count in _fields(instruction))


def _fields(instruction: Instruction) -> Iterator[tuple[str, int]]:
    for name, value in instruction.values.items():
        if name in (*SHRINKABLE_FIELDS, *MODE_FIELDS):
            yield name, value


def _simpler(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction with one field reduced, by the largest amount first."""
    format = instruction.format
    if format is None:
        return  # a word without fields
    for name, value in _fields(instruction):
        least = 0 if name in MODE_FIELDS else 1
        if value > least:
            field = format.field(name)
            for smaller in sorted({least, max(least, value // 2), value - 1}):
                yield Instruction(instruction.word & ~field.mask | field.insert(smaller))
