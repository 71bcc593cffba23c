"""Finds the instruction of a program that caused a failure of a memory or a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from openmxu.arch.config import Config
from openmxu.arch.effects import Memory, accesses, unit_of
from openmxu.arch.isa import Instruction, Opcode, Unit
from openmxu.arch.legality import LegalityChecker
from openmxu.arch.registers import BusPort

__all__ = ["accessing_instruction", "fetched", "oldest_unfinished"]


def oldest_unfinished(instructions: Sequence[Instruction], finished: Mapping[Unit, int], reached: int) -> int:
    """The position of the oldest instruction that its unit has begun or queued but not finished.

    Parameters
    ----------
    finished
        How many instructions each unit has finished.
    reached
        Position of the instruction that dispatch has reached: the answer when all before it have finished.
    """
    left = dict(finished)
    for position in range(reached):
        instruction = instructions[position]
        unit = None if instruction.format is None else unit_of(instruction)
        if unit in left:
            left[unit] -= 1
            if left[unit] < 0:
                return position
    return reached


def fetched(instructions: Sequence[Instruction], tiles: int) -> int:
    """The number of Read_Weights that are complete after ``tiles`` tiles have been fetched."""
    count = 0
    for instruction in instructions:
        if instruction.word & 0xFF == Opcode.READ_WEIGHTS:
            tiles -= instruction["tiles"]
            if tiles < 0:
                return count
            count += 1
    return count


def accessing_instruction(
    config: Config, instructions: Sequence[Instruction], port: BusPort, begin: int, address: int, size: int
) -> int | None:
    """The position of the first instruction from ``begin`` on that accesses one of ``size`` bytes at ``address``.

    Parameters
    ----------
    port
        The port that accessed memory; not ``PROGRAM``.
    address
        Address as the program sees it.

    Returns
    -------
    ``None`` when there is no such instruction.
    """
    unit = {BusPort.HOST_READ: Unit.HOST_READ, BusPort.HOST_WRITE: Unit.HOST_WRITE, BusPort.WEIGHTS: Unit.WEIGHT}[port]
    for position, first, end in _accesses(config, instructions, unit):
        if position >= begin and first < address + size and address < end:
            return position
    return None


def _accesses(config: Config, instructions: Sequence[Instruction], unit: Unit) -> Iterator[tuple[int, int, int]]:
    """For each memory access of a unit: position of the instruction, first byte, and end (exclusive)."""
    state = LegalityChecker(config)
    for position, instruction in enumerate(instructions):
        if state.check(instruction):
            return  # a program ends at its first fault
        for access in accesses(instruction, state.registers, config):
            if access.unit is unit and access.memory in (Memory.HOST, Memory.WEIGHTS):
                yield position, access.first, access.end
