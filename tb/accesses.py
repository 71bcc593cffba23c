"""What an instruction of a program touches, read off its fields."""

from __future__ import annotations

from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Operand, Pooling, Register
from openmxu.arch.legality import PARAMETER_ROWS, LegalityChecker, host_extent
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import CONFIG
from tb.hazards import Access

__all__ = ["access_of", "configuration"]

_READS = (Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE)
_WRITES = (Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)


def configuration(checker: LegalityChecker) -> dict[str, dict[str, int]]:
    """The configuration registers as the program has set them, by name."""
    return {
        register.name.lower(): checker.register(register.number) for register in REGISTERS if not register.is_action
    }


def access_of(instruction: Instruction, checker: LegalityChecker) -> Access | None:
    """What a legal instruction touches, ``None`` for one that no unit with a queue executes."""
    opcode, values = instruction.format.opcode, instruction.values
    if opcode in (*_READS, *_WRITES):
        stride = checker.register(Register.HOST_STRIDE)["stride"] if opcode in _ALTERNATE else CONFIG.size
        extent = host_extent(values["rows"], CONFIG.size, stride)
        unit = QueuedUnit.HOST_READ if opcode in _READS else QueuedUnit.HOST_WRITE
        host = range(values["host"], values["host"] + extent)
        return Access(unit, _rows(values["unified_buffer"], values["rows"]), opcode in _READS, host=host)
    if opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE):
        inputs = outputs = values.get("rows")
        if opcode is Opcode.CONVOLVE:
            plane = checker.register(Register.CONVOLUTION_PLANE)
            inputs, outputs = plane["height"] * plane["width"], values["height"] * values["width"]
        rows = _rows(values["unified_buffer"], inputs << values["wide_input"])
        return Access(QueuedUnit.MATRIX, rows, False, _rows(values["accumulator"], outputs))
    if opcode is Opcode.ACTIVATE:
        return _activate_access(values, checker)
    if opcode is Opcode.SET_CONFIGURATION and values["register"] == Register.LOAD_PARAMETERS:
        load = REGISTERS[Register.LOAD_PARAMETERS].unpack(values["value"])
        rows = _rows(load["unified_buffer"], PARAMETER_ROWS * load["count"])
        return Access(QueuedUnit.ACTIVATION, rows, False)
    if opcode is Opcode.SET_CONFIGURATION and values["register"] == Register.LOAD_TABLE:
        return Access(QueuedUnit.ACTIVATION, _rows(values["value"], 256 // CONFIG.size), False)
    return None


def _activate_access(values: dict[str, int], checker: LegalityChecker) -> Access:
    count = sources = values["rows"]
    if values["pooling"] != Pooling.NONE:
        plane = checker.register(Register.POOLING_PLANE)
        sources = plane["height"] * plane["width"]
    source = accumulators = operand = None
    if values["from_unified_buffer"]:
        source = _rows(values["source"], sources << checker.register(Register.SOURCE_FORMAT)["wide"])
    else:
        accumulators = _rows(values["source"], sources)
    if values["operand"] != Operand.NONE:
        first = checker.register(Register.OPERAND_ADDRESS)["unified_buffer"]
        operand = _rows(first, count << checker.register(Register.OPERAND_FORMAT)["wide"])
    results = _rows(values["unified_buffer"], count * (1, 2, 4)[values["output"]])
    return Access(QueuedUnit.ACTIVATION, results, True, accumulators, None, source, operand)


def _rows(first: int, count: int) -> range:
    return range(first, first + count)
