"""Instructions that fault: one for each fault code, in whatever state a program is."""

from __future__ import annotations

import numpy as np

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import (
    FORMATS,
    WORD_BITS,
    Instruction,
    Opcode,
    OutputFormat,
    Pooling,
    Register,
    format_named,
    register_format,
)
from openmxu.arch.legality import PARAMETER_ROWS, LegalityChecker
from openmxu.sim.lockstep.case import HALT

__all__ = ["FAULT_CODES", "faulting_instructions"]

FAULT_CODES: tuple[FaultCode, ...] = tuple(code for code in FaultCode if code is not FaultCode.NONE)

_MOST_TILES_TO_DRAIN = 6


def faulting_instructions(code: FaultCode, checker: LegalityChecker, rng: np.random.Generator) -> list[Instruction]:
    """Instructions of which the last one raises ``code`` in the state of ``checker``; those before it are legal.

    Parameters
    ----------
    code
        Any but ``NONE``.
    checker
        State of the program, with the windows of both memories; it is left as it is.
    rng
        Chooses among the ways to raise the fault.
    """
    match code:
        case FaultCode.WEIGHT_QUEUE_FULL:
            free = checker.config.weight_queue_depth - len(checker.outstanding)
            return [format_named("Read_Weights")(tiles=1)] * (free + 1)
        case FaultCode.NO_TILE:
            return _no_tile(checker, rng)
        case FaultCode.UNKNOWN_OPCODE:
            known = {int(opcode) for opcode in Opcode}
            opcode = rng.choice([number for number in range(256) if number not in known])
            return [Instruction(_random_word(rng) & ~0xFF | int(opcode))]
        case FaultCode.RESERVED_BITS:
            return [_reserved_bits(rng)]
    ways = _ways(code, checker)
    return [ways[rng.integers(len(ways))]]


def _random_word(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(WORD_BITS // 8), "little")


def _reserved_bits(rng: np.random.Generator) -> Instruction:
    formats = [format for format in FORMATS if format.opcode is not Opcode.HALT]
    format = formats[rng.integers(len(formats))]
    reserved = [bit for bit in range(WORD_BITS) if not format.defined_mask >> bit & 1]
    return Instruction(int(format.opcode) | 1 << int(rng.choice(reserved)))


def _no_tile(checker: LegalityChecker, rng: np.random.Generator) -> list[Instruction]:
    multiply = format_named("MatrixMultiply")
    reuse, take = multiply(rows=1), multiply(rows=1, next_tile=1)
    if not checker.outstanding:
        return [take]
    if not checker.tile_in_array:
        return [reuse]
    tiles = sum(checker.outstanding)
    if tiles <= _MOST_TILES_TO_DRAIN:
        return [take] * (tiles + 1)
    return [HALT, (reuse, take)[rng.integers(2)]]


def _set(register: int, value: int) -> Instruction:
    return format_named("Set_Configuration")(register=register, value=value)


def _ways(code: FaultCode, checker: LegalityChecker) -> list[Instruction]:
    """Instructions that raise ``code`` in every state, for the codes that do not depend on it."""
    config, host, weights = checker.config, checker.host, checker.weights
    read, write = format_named("Read_Host_Memory"), format_named("Write_Host_Memory")
    multiply, activate = format_named("MatrixMultiply"), format_named("Activate")
    load = register_format(Register.LOAD_PARAMETERS)
    input_format = register_format(Register.INPUT_FORMAT)
    last_row, last_sum = config.unified_buffer_rows - 1, config.accumulator_rows - 1
    match code:
        case FaultCode.UNIMPLEMENTED:
            return [
                format_named("Convolve")(height=1, width=1),
                multiply(rows=1, wide_input=1),
                multiply(rows=1, wide_weights=1),
                activate(rows=1, from_unified_buffer=1),
                activate(rows=1, table=1),
                activate(rows=1, output=OutputFormat.WORD),
                activate(rows=1, pooling=Pooling.MAX),
                activate(rows=1, operand=1),
                _set(Register.LOAD_TABLE, 0),
                _set(Register.CONVOLUTION_PLANE, 1),
                _set(Register.POOLING_WINDOW, 1),
            ]
        case FaultCode.ILLEGAL_VALUE:
            return [
                read(rows=0),
                write(rows=1, host=1),
                multiply(rows=0),
                activate(rows=0),
                format_named("Read_Weights")(tiles=0),
                format_named("Read_Weights")(tiles=1, weights=1),
                format_named("Synchronize")(units=1 << 5),
                _set(len(Register), 0),
                _set(Register.INPUT_FORMAT, input_format.pack(zero_point=-1)),
                _set(Register.WEIGHT_FORMAT, input_format.pack(zero_point=128, signed=1)),
                _set(Register.OUTPUT_FORMAT, 1 << 63),
                _set(Register.HOST_STRIDE, 1),
                _set(Register.LOAD_PARAMETERS, load.pack(count=0)),
            ]
        case FaultCode.UNIFIED_BUFFER_RANGE:
            return [
                read(unified_buffer=last_row, rows=2),
                write(unified_buffer=last_row + 1, rows=1),
                multiply(unified_buffer=last_row, rows=2),
                multiply(rows=(1 << 32) - 1),
                activate(unified_buffer=last_row, rows=2),
                activate(unified_buffer=last_row - 2, rows=1, output=OutputFormat.INT32),
                _set(
                    Register.LOAD_PARAMETERS, load.pack(unified_buffer=last_row - PARAMETER_ROWS + 2, first=0, count=1)
                ),
            ]
        case FaultCode.ACCUMULATOR_RANGE:
            return [multiply(accumulator=last_sum, rows=2), activate(accumulator=last_sum, rows=2)]
        case FaultCode.PARAMETER_RANGE:
            return [
                activate(rows=1, parameters=config.parameter_sets),
                _set(Register.LOAD_PARAMETERS, load.pack(first=config.parameter_sets, count=1)),
            ]
        case FaultCode.HOST_WINDOW:
            beyond = -(-(host.limit - config.size + 1) // config.host_alignment) * config.host_alignment
            return [read(host=beyond, rows=1), write(host=beyond, rows=1), read(host=1 << 63, rows=1)]
        case FaultCode.WEIGHT_WINDOW:
            beyond = -(-(weights.limit - config.tile_bytes + 1) // config.weight_alignment) * config.weight_alignment
            return [
                format_named("Read_Weights")(weights=beyond, tiles=1),
                format_named("Read_Weights")(weights=0, tiles=(1 << 24) - 1),
            ]
        case _:
            raise ValueError(f"{code.name} depends on the program's state")
