"""What an instruction of a program touches, read off its fields."""

from __future__ import annotations

from openmxu.arch.isa import REGISTERS, Instruction, Opcode, OutputFormat, Register
from openmxu.arch.legality import PARAMETER_ROWS, LegalityChecker, host_extent
from openmxu.rtl.scoreboard import QueuedUnit
from tb.bench import CONFIG
from tb.hazards import Access

__all__ = ["access_of"]

_READS = (Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE)
_WRITES = (Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)


def access_of(instruction: Instruction, checker: LegalityChecker) -> Access | None:
    """What a legal instruction touches, ``None`` for one that no unit with a queue executes."""
    opcode, values = instruction.format.opcode, instruction.values
    if opcode in (*_READS, *_WRITES):
        stride = checker.register(Register.HOST_STRIDE)["stride"] if opcode in _ALTERNATE else CONFIG.size
        extent = host_extent(values["rows"], CONFIG.size, stride)
        unit = QueuedUnit.HOST_READ if opcode in _READS else QueuedUnit.HOST_WRITE
        host = range(values["host"], values["host"] + extent)
        return Access(unit, _rows(values["unified_buffer"], values["rows"]), opcode in _READS, host=host)
    if opcode is Opcode.MATRIX_MULTIPLY:
        rows = _rows(values["unified_buffer"], values["rows"])
        return Access(QueuedUnit.MATRIX, rows, False, _rows(values["accumulator"], values["rows"]))
    if opcode is Opcode.ACTIVATE:
        count = values["rows"] * (4 if values["output"] == OutputFormat.INT32 else 1)
        rows = _rows(values["unified_buffer"], count)
        return Access(QueuedUnit.ACTIVATION, rows, True, _rows(values["accumulator"], values["rows"]))
    if opcode is Opcode.SET_CONFIGURATION and values["register"] == Register.LOAD_PARAMETERS:
        load = REGISTERS[Register.LOAD_PARAMETERS].unpack(values["value"])
        rows = _rows(load["unified_buffer"], PARAMETER_ROWS * load["count"])
        return Access(QueuedUnit.ACTIVATION, rows, False)
    return None


def _rows(first: int, count: int) -> range:
    return range(first, first + count)
