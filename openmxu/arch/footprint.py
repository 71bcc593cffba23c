"""What a legal instruction touches: rows of which memories, and which configuration registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Operand, OutputFormat, Pooling, Register, Unit
from openmxu.arch.legality import OUTPUT_BYTES, PARAMETER_ROWS, LegalityChecker, host_extent, table_rows

__all__ = ["Access", "Memory", "Role", "accesses", "unit_of", "used_registers"]

_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_READS = (Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE)
_WRITES = (Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_ACTIONS = (Register.LOAD_PARAMETERS, Register.LOAD_TABLE)


class Memory(Enum):
    """What instructions meet in."""

    UNIFIED_BUFFER = "unified buffer"
    ACCUMULATORS = "accumulators"
    HOST = "host memory"
    PARAMETERS = "parameters"
    TABLE = "table"


class Role(Enum):
    """Which part of which instruction touches a memory."""

    READ_HOST_MEMORY = "Read_Host_Memory"
    WRITE_HOST_MEMORY = "Write_Host_Memory"
    MATRIX_MULTIPLY = "MatrixMultiply"
    CONVOLVE = "Convolve"
    SOURCE = "Activate's source"
    OPERAND = "Activate's operand"
    RESULT = "Activate's result"
    ACTIVATE = "Activate"
    LOAD_PARAMETERS = "LOAD_PARAMETERS"
    LOAD_TABLE = "LOAD_TABLE"


@dataclass(frozen=True)
class Access:
    """Rows ``first`` up to, but not including, ``end`` of a memory; bytes of host memory, sets of parameters.

    ``rows_each`` is how many rows an element, an input or a result has.
    """

    role: Role
    unit: Unit
    memory: Memory
    first: int
    end: int
    writes: bool
    rows_each: int = 1


def unit_of(instruction: Instruction) -> Unit | None:
    """The unit that executes a legal instruction; ``None`` for the dispatcher itself."""
    match instruction.format.opcode:
        case opcode if opcode in _READS:
            return Unit.HOST_READ
        case opcode if opcode in _WRITES:
            return Unit.HOST_WRITE
        case Opcode.READ_WEIGHTS:
            return Unit.WEIGHT
        case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE:
            return Unit.MATRIX
        case Opcode.ACTIVATE:
            return Unit.ACTIVATION
        case Opcode.SET_CONFIGURATION if instruction["register"] in _ACTIONS:
            return Unit.ACTIVATION
    return None


def used_registers(instruction: Instruction) -> set[Register]:
    """The configuration registers whose values a legal instruction uses."""
    values = instruction.values
    match instruction.format.opcode:
        case opcode if opcode in _ALTERNATE:
            return {Register.HOST_STRIDE}
        case Opcode.READ_WEIGHTS:
            return {Register.WEIGHT_FORMAT}
        case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE as opcode:
            used = {Register.CONVOLUTION_PLANE} if opcode is Opcode.CONVOLVE else set()
            return used if values["wide_input"] else used | {Register.INPUT_FORMAT}
        case Opcode.ACTIVATE:
            used = set()
            if values["from_unified_buffer"]:
                used.add(Register.SOURCE_FORMAT)
            if values["pooling"] != Pooling.NONE:
                used |= {Register.POOLING_WINDOW, Register.POOLING_PLANE}
            if values["operand"] != Operand.NONE:
                used |= {Register.OPERAND_ADDRESS, Register.OPERAND_FORMAT}
            if values["operand"] == Operand.ADD:
                used.add(Register.OPERAND_SCALE)
            if values["output"] != OutputFormat.INT32:
                used.add(Register.OUTPUT_FORMAT)
            return used
    return set()


def accesses(instruction: Instruction, state: LegalityChecker) -> list[Access]:
    """What a legal instruction touches when it executes in ``state``, the one before it."""
    unit = unit_of(instruction)
    if unit is None or unit is Unit.WEIGHT:
        return []
    found = {
        Unit.HOST_READ: _transfer,
        Unit.HOST_WRITE: _transfer,
        Unit.MATRIX: _multiplication,
        Unit.ACTIVATION: _activation,
    }[unit](instruction, state)
    return [
        Access(role, unit, memory, first, first + count * each, writes, each)
        for role, memory, first, count, writes, each in found
    ]


_Found = Iterator[tuple[Role, Memory, int, int, bool, int]]


def _transfer(instruction: Instruction, state: LegalityChecker) -> _Found:
    opcode, values, size = instruction.format.opcode, instruction.values, state.config.size
    reads = opcode in _READS
    role = Role.READ_HOST_MEMORY if reads else Role.WRITE_HOST_MEMORY
    stride = state.register(Register.HOST_STRIDE)["stride"] if opcode in _ALTERNATE else size
    yield role, Memory.UNIFIED_BUFFER, values["unified_buffer"], values["rows"], reads, 1
    yield role, Memory.HOST, values["host"], host_extent(values["rows"], size, stride), not reads, 1


def _multiplication(instruction: Instruction, state: LegalityChecker) -> _Found:
    values = instruction.values
    if instruction.format.opcode is Opcode.CONVOLVE:
        plane = state.register(Register.CONVOLUTION_PLANE)
        role, inputs, outputs = Role.CONVOLVE, plane["height"] * plane["width"], values["height"] * values["width"]
    else:
        role, inputs, outputs = Role.MATRIX_MULTIPLY, values["rows"], values["rows"]
    yield role, Memory.UNIFIED_BUFFER, values["unified_buffer"], inputs, False, 1 << values["wide_input"]
    yield role, Memory.ACCUMULATORS, values["accumulator"], outputs, True, 1
    if values["accumulate"]:
        yield role, Memory.ACCUMULATORS, values["accumulator"], outputs, False, 1


def _activation(instruction: Instruction, state: LegalityChecker) -> _Found:
    if instruction.format.opcode is Opcode.SET_CONFIGURATION:
        yield from _load(instruction, state)
        return
    values = instruction.values
    rows = sources = values["rows"]
    if values["pooling"] != Pooling.NONE:
        plane = state.register(Register.POOLING_PLANE)
        sources = plane["height"] * plane["width"]
    if values["from_unified_buffer"]:
        wide = state.register(Register.SOURCE_FORMAT)["wide"]
        yield Role.SOURCE, Memory.UNIFIED_BUFFER, values["source"], sources, False, 1 << wide
    else:
        yield Role.SOURCE, Memory.ACCUMULATORS, values["source"], sources, False, 1
    if values["operand"] != Operand.NONE:
        first = state.register(Register.OPERAND_ADDRESS)["unified_buffer"]
        wide = state.register(Register.OPERAND_FORMAT)["wide"]
        yield Role.OPERAND, Memory.UNIFIED_BUFFER, first, rows, False, 1 << wide
    each = OUTPUT_BYTES[OutputFormat(values["output"])]
    yield Role.RESULT, Memory.UNIFIED_BUFFER, values["unified_buffer"], rows, True, each
    yield Role.ACTIVATE, Memory.PARAMETERS, values["parameters"], 1, False, 1
    if values["table"]:
        yield Role.ACTIVATE, Memory.TABLE, 0, 1, False, 1


def _load(instruction: Instruction, state: LegalityChecker) -> _Found:
    values = REGISTERS[instruction["register"]].unpack(instruction["value"])
    if instruction["register"] == Register.LOAD_TABLE:
        rows = table_rows(state.config.size)
        yield Role.LOAD_TABLE, Memory.UNIFIED_BUFFER, values["unified_buffer"], rows, False, 1
        yield Role.LOAD_TABLE, Memory.TABLE, 0, 1, True, 1
        return
    first, count = values["unified_buffer"], PARAMETER_ROWS * values["count"]
    yield Role.LOAD_PARAMETERS, Memory.UNIFIED_BUFFER, first, count, False, 1
    yield Role.LOAD_PARAMETERS, Memory.PARAMETERS, values["first"], values["count"], True, 1
