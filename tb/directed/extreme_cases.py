"""Cases with values that random programs avoid: every field of every instruction and register over its whole range.

Most of them fault, and then every bit of a value matters. Others are legal but unusual: planes wider than the memory,
strides larger than a plane, windows entirely in the padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import OUTPUT_BYTES, PARAMETER_ROWS
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import (
    FORMATS,
    REGISTERS,
    Field,
    Instruction,
    Opcode,
    OutputFormat,
    Pooling,
    Register,
    RegisterFormat,
    format_named,
    register_format,
)
from openmxu.arch.legality import LegalityChecker, Window
from tb.directed.parameters import parameter_set
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["extremes", "long_program", "plain_memories", "settings", "use"]

_PROGRAMS = 1500
"""Number of instructions that use registers with values of all sizes."""

_CASES = 10

_MOST_PASSES = 3000
"""Upper limit for an Activate with windows; more passes take too long."""

_USES = (
    Opcode.CONVOLVE,
    Opcode.ACTIVATE,
    Opcode.ACTIVATE,
    Opcode.MATRIX_MULTIPLY,
    Opcode.READ_HOST_MEMORY,
    Opcode.READ_HOST_MEMORY_ALTERNATE,
    Opcode.WRITE_HOST_MEMORY,
    Opcode.WRITE_HOST_MEMORY_ALTERNATE,
    Opcode.READ_WEIGHTS,
    Opcode.SET_CONFIGURATION,
)

_SIZES = ("rows", "height", "width", "output_width", "tiles", "count")
"""Fields that must not be 0."""


def extremes(config: Config, seed: int) -> Iterator[Case]:
    """Registers with values of all sizes; after every few settings, an instruction that uses them."""
    rng = np.random.default_rng(seed)
    setup, host, weights = plain_memories(config, rng)
    for _ in range(_CASES):
        checker = LegalityChecker(config, Window(0, host.size), Window(0, weights.size))
        program = list(setup)
        for _ in range(_PROGRAMS // _CASES):
            for instruction in (*settings(config, rng), *_tiles(config), use(config, checker, rng), HALT):
                program.append(instruction)
                if checker.check(instruction) is not FaultCode.NONE:
                    break
            if program[-1] != HALT:
                program.append(HALT)
            checker.begin_program()
        yield Case(config, tuple(program), host, weights, seed, separate=True)


def plain_memories(
    config: Config, rng: np.random.Generator
) -> tuple[list[Instruction], NDArray[np.uint8], NDArray[np.uint8]]:
    """The program of :func:`_plain_parameters`, host memory that begins with its data, and weight memory."""
    setup, parameters = _plain_parameters(config)
    host = np.concatenate([parameters, rng.integers(0, 256, 4096 - parameters.size, np.uint8)])
    weights = rng.integers(0, 256, 16 * max(config.tile_bytes, config.weight_data_bytes), np.uint8)
    return setup, host, weights


def _plain_parameters(config: Config) -> tuple[list[Instruction], NDArray[np.uint8]]:
    """A program that sets all parameter sets to a bias of 0 and a scale of 1, and the host memory that it reads."""
    rows = PARAMETER_ROWS * config.parameter_sets
    load = register_format(Register.LOAD_PARAMETERS).pack(count=config.parameter_sets)
    program = [
        format_named("read_host_memory")(unified_buffer=0, rows=rows),
        format_named("set_configuration")(register=Register.LOAD_PARAMETERS, value=load),
        format_named("read_host_memory")(unified_buffer=0, rows=rows, host=rows * config.size),
        HALT,
    ]
    return program, np.tile(parameter_set(config, bias=0, scale=1), config.parameter_sets)


def long_program(config: Config, seed: int) -> Case:
    """A fault at a large instruction index, and an event with a large index before it."""
    nop = format_named("nop")()
    program = [*(nop for _ in range((1 << 14) + 5)), format_named("debug_tag")(tag=0x55AA1234), Instruction(0xFF)]
    return Case(config, (*program, HALT), np.zeros(64, np.uint8), np.zeros(64, np.uint8), seed)


def settings(config: Config, rng: np.random.Generator) -> Iterator[Instruction]:
    """Set some registers to random values, which are nearly always legal."""
    for register in rng.permutation([register for register in REGISTERS if not register.is_action])[:4]:
        for _ in range(8):
            instruction = _with_any_values(config, register, rng)
            if LegalityChecker(config).check(instruction) is FaultCode.NONE:
                break
        yield instruction


def _with_any_values(config: Config, register: RegisterFormat, rng: np.random.Generator) -> Instruction:
    values = {field.name: _any_value(field, rng) for field in register.fields}
    if rng.random() < 0.95:
        values |= {name: max(1, value) for name, value in values.items() if name in _SIZES}
    if register.number in (Register.CONVOLUTION_PLANE, Register.POOLING_PLANE) and rng.random() < 0.9:
        rows = config.unified_buffer_rows // 2 if rng.random() < 0.5 else config.accumulator_rows
        values["height"] = min(values["height"], rows)
        values["width"] = min(values["width"], rows // max(1, values["height"]))
    if register.number is Register.POOLING_WINDOW:
        one, other = rng.permutation(["height", "width"])
        values[one] = min(values[one], int(rng.integers(1, 4)))
        values[other] = min(values[other], _MOST_PASSES >> int(rng.integers(1, 9)))
    if register.number is Register.HOST_STRIDE:
        values["stride"] = values["stride"] // config.host_alignment * config.host_alignment
    if register.number is Register.OPERAND_ADDRESS and rng.random() < 0.8:
        values["unified_buffer"] %= config.unified_buffer_rows
    return format_named("set_configuration")(register=register.number, value=register.pack(**values))


def _tiles(config: Config) -> list[Instruction]:
    """Load a tile into the array, and leave two in the queue."""
    return [format_named("read_weights")(tiles=3), format_named("matrixmultiply")(rows=1, next_tile=1)]


def use(
    config: Config, checker: LegalityChecker, rng: np.random.Generator, opcodes: Sequence[Opcode] = _USES
) -> Instruction:
    """An instruction of one of these kinds, nearly always legal; Halt if it would take too long."""
    opcode = opcodes[rng.integers(len(opcodes))]
    format = next(format for format in FORMATS if format.opcode is opcode)
    for _ in range(40):
        if opcode is Opcode.SET_CONFIGURATION:
            actions = [register for register in REGISTERS if register.is_action]
            instruction = _with_any_values(config, actions[rng.integers(len(actions))], rng)
        else:
            instruction = format(**{field.name: _any_value(field, rng) for field in format.fields})
            instruction = _nearly_legal(config, checker, instruction, rng)
        wanted = FaultCode.NONE if rng.random() < 0.9 else None
        if _is_quick(config, checker, instruction) and wanted in (None, checker.fault(instruction)):
            break
    return instruction if _is_quick(config, checker, instruction) else HALT


def _nearly_legal(
    config: Config, checker: LegalityChecker, instruction: Instruction, rng: np.random.Generator
) -> Instruction:
    """Limit all fields, or all but one, to the sizes of the memories."""
    values = dict(instruction.values)
    rows = config.unified_buffer_rows
    limits = {
        "unified_buffer": rows,
        "accumulator": config.accumulator_rows,
        "source": rows if values.get("from_unified_buffer") else config.accumulator_rows,
        "rows": rows // 2 if "host" in values else config.accumulator_rows,
        "height": config.accumulator_rows,
        "width": max(1, config.accumulator_rows // max(1, values.get("height", 1))),
        "tiles": 12,
        "weights": 12 * config.tile_bytes,
        "host": 2048,
        "parameters": config.parameter_sets,
        "output": 3,
        "pooling": 3,
        "operand": 3,
        "units": 32,
    }
    strange = rng.choice(list(values)) if rng.random() < 0.3 else None
    for name, limit in limits.items():
        if name in values and name != strange:
            values[name] %= limit
            if name in _SIZES:
                values[name] = max(1, values[name])
    for name, alignment in (("host", config.host_alignment), ("weights", config.weight_alignment)):
        if name in values and name != strange:
            values[name] = values[name] // alignment * alignment
    # Move large values so that their range ends at the end of the memory, which is still legal.
    for name, length, memory in (
        ("unified_buffer", values.get("rows", 1), rows),
        ("accumulator", values.get("rows", values.get("height", 1) * values.get("width", 1)), config.accumulator_rows),
    ):
        if name in values and name != strange and rng.random() < 0.6:
            values[name] = max(0, min(values[name], memory - length))
    return instruction.format(**values)


def _is_quick(config: Config, checker: LegalityChecker, instruction: Instruction) -> bool:
    values = instruction.values
    if "pooling" not in values or values["pooling"] == Pooling.NONE or values["output"] not in tuple(OutputFormat):
        return True
    window = checker.register(Register.POOLING_WINDOW)
    passes = values["rows"] * window["height"] * window["width"] * OUTPUT_BYTES[OutputFormat(values["output"])]
    return passes * config.column_groups <= _MOST_PASSES


def _any_value(field: Field, rng: np.random.Generator) -> int:
    """A small value, one next to a power of two, or any value."""
    match rng.integers(4):
        case 0:
            value = int(rng.integers(0, 5))
        case 1 | 2:
            value = (1 << int(rng.integers(field.width))) + int(rng.choice([0, 0, 0, -1, 1, 2, 3]))
        case _:
            value = int.from_bytes(rng.bytes(8), "little") >> int(rng.integers(64))
    value &= (1 << field.width) - 1
    return value - (1 << field.width) if field.signed and value >> (field.width - 1) else value
