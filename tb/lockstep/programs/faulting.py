"""Instructions that fault, for each fault code and any state of a program."""

from __future__ import annotations

import copy

import numpy as np

from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import (
    REGISTERS,
    WORD_BITS,
    Instruction,
    Opcode,
    Operand,
    OutputFormat,
    Pooling,
    Register,
    format_named,
)
from openmxu.arch.legality import LegalityChecker
from tb.lockstep.case import HALT

__all__ = ["faulting_instructions"]

HOST_TRANSFERS = (
    "Read_Host_Memory",
    "Read_Host_Memory_Alternate",
    "Write_Host_Memory",
    "Write_Host_Memory_Alternate",
)

_MOST_TILES_TO_DRAIN = 6


def faulting_instructions(code: FaultCode, checker: LegalityChecker, rng: np.random.Generator) -> list[Instruction]:
    """Instructions of which the last raises ``code`` in the state of ``checker``; those before it are legal.

    Parameters
    ----------
    code
        One of :data:`~openmxu.arch.faults.CORE_FAULTS`.
    checker
        State of the program, with the windows of both memories; it is not changed.
    rng
        Chooses among the ways to raise the fault.
    """
    match code:
        case FaultCode.WEIGHT_QUEUE_FULL:
            return _queue_full(checker, rng)
        case FaultCode.NO_TILE:
            return _no_tile(checker, rng)
        case FaultCode.UNKNOWN_OPCODE:
            known = {int(format.opcode) for format in checker.config.features.formats}
            opcode = rng.choice([number for number in range(256) if number not in known])
            return [Instruction(_random_word(rng) & ~0xFF | int(opcode))]
        case FaultCode.RESERVED_BITS:
            return [_reserved_bits(checker, rng)]
    ways = [way for way in _WAYS[code](checker) if _raises(way, code, checker)]
    return ways[rng.integers(len(ways))]


def _make(name: str, **fields: int) -> Instruction:
    return format_named(name)(**fields)


def _set(register: int, value: int) -> Instruction:
    return _make("Set_Configuration", register=register, value=value)


def _fields(register: Register, **fields: int) -> Instruction:
    return _set(register, REGISTERS[register].pack(**fields))


def _random_word(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(WORD_BITS // 8), "little")


def _raises(way: list[Instruction], code: FaultCode, checker: LegalityChecker) -> bool:
    """Whether only the last instruction faults, with ``code``; in a profile that lacks some instruction or field, the
    fault may be another one."""
    state = copy.deepcopy(checker)
    faults = [state.check(instruction) for instruction in way]
    return faults == [FaultCode.NONE] * (len(way) - 1) + [code]


def _reserved_bits(checker: LegalityChecker, rng: np.random.Generator) -> Instruction:
    # Not Halt: devices recognize the end of a program by this opcode.
    formats = [format for format in checker.config.features.formats if format.opcode is not Opcode.HALT]
    format = formats[rng.integers(len(formats))]
    reserved = [bit for bit in range(WORD_BITS) if not format.defined_mask >> bit & 1]
    return Instruction(int(format.opcode) | 1 << int(rng.choice(reserved)))


def _queue_full(checker: LegalityChecker, rng: np.random.Generator) -> list[Instruction]:
    config = checker.config
    free = config.weight_queue_depth - len(checker.outstanding)
    read = _make("Read_Weights", tiles=1)
    if not config.features.has(Opcode.LOAD_WEIGHTS) or rng.integers(2):
        return [read] * (free + 1)
    load = _make("Load_Weights", transposed=int(rng.integers(2)))
    room = max(0, config.weight_fifo_tiles - sum(checker.outstanding))
    begin, loads = _fields(Register.WEIGHT_FORMAT), [load] * (min(free, room) + 1)
    # Tiles of a Read_Weights take the room, if they lie in the window.
    long_read = [begin, _make("Read_Weights", tiles=max(1, room)), load]
    if rng.integers(2) and _raises(long_read, FaultCode.WEIGHT_QUEUE_FULL, checker):
        return long_read
    return [begin, *loads]


def _no_tile(checker: LegalityChecker, rng: np.random.Generator) -> list[Instruction]:
    plane = _fields(Register.CONVOLUTION_PLANE, height=1, width=1)
    convolves = checker.config.features.has(Opcode.CONVOLVE) and not rng.integers(2)
    multiply = ([plane], "Convolve", {"height": 1, "width": 1}) if convolves else ([], "MatrixMultiply", {"rows": 1})
    before, name, shape = multiply
    reuse, take = _make(name, **shape), _make(name, **shape, next_tile=1)
    take_two = _make(name, **shape, next_tile=1, wide_weights=1)
    tiles = sum(checker.outstanding)
    if tiles > _MOST_TILES_TO_DRAIN:
        ways = (reuse, take, take_two)[: 3 if checker.config.features.has(Opcode.CONVOLVE) else 2]
        return [HALT, *before, ways[rng.integers(len(ways))]]
    if tiles and not checker.tile_in_array and rng.integers(2):
        return [*before, reuse]
    if rng.integers(2) or not checker.config.features.has(Opcode.MATRIX_MULTIPLY, "wide_weights"):
        return [*before, *[take] * tiles, take]
    return [*before, *[take] * max(0, tiles - 1), take_two]


def _unimplemented(checker: LegalityChecker) -> list[list[Instruction]]:
    ways = []
    for field in format_named("Activate").fields:
        if field.implemented is not None:
            numbers = sorted(set(range(field.maximum + 1)) - set(field.implemented))
            ways += [[_make("Activate", rows=1, **{field.name: number})] for number in (*numbers[:2], numbers[-1])]
    return ways


def _illegal_values(checker: LegalityChecker) -> list[list[Instruction]]:
    pool = _make("Activate", rows=1, pooling=Pooling.MAX)
    plane = REGISTERS[Register.POOLING_PLANE]
    ways = [
        *(_make(name, rows=0) for name in HOST_TRANSFERS),
        *(_make(name, rows=1, host=1) for name in HOST_TRANSFERS),
        _make("MatrixMultiply", rows=0),
        _make("MatrixMultiply", rows=1, wide_weights=1),
        _make("Convolve", height=0, width=1),
        _make("Convolve", height=1, width=0),
        _make("Activate", rows=0),
        _make("Activate", rows=1, table=1, output=OutputFormat.WORD),
        _make("Activate", rows=1, table=1, output=OutputFormat.INT32),
        _make("Activate", rows=1, operand=Operand.ADD, output=OutputFormat.INT32),
        _make("Read_Weights", tiles=0),
        _make("Read_Weights", tiles=1, weights=1),
        _make("Synchronize", units=1 << 5),
        _make("Synchronize", units=1 << 7),
        _set(len(Register), 0),
        _set(0xFFFF, 0),
        _fields(Register.INPUT_FORMAT, zero_point=-1),
        _fields(Register.INPUT_FORMAT, zero_point=256),
        _fields(Register.WEIGHT_FORMAT, zero_point=128, signed=1),
        _fields(Register.WEIGHT_FORMAT, zero_point=1, wide=1),
        _fields(Register.WEIGHT_FORMAT, signed=1, wide=1),
        _fields(Register.SOURCE_FORMAT, zero_point=256),
        _fields(Register.SOURCE_FORMAT, zero_point=-1, wide=1),
        _fields(Register.OPERAND_FORMAT, zero_point=-129, signed=1),
        _fields(Register.OPERAND_FORMAT, zero_point=32768, signed=1, wide=1),
        _fields(Register.LOAD_PARAMETERS, count=0),
        *(_set(register, 0) for register in Register if checker.config.features.register(register) is None),
        _fields(Register.HOST_STRIDE, stride=1),
        *(_set(register.number, 1 << bit) for register in REGISTERS if (bit := register.used_mask.bit_length()) < 64),
    ]
    empty = [
        [_fields(Register.CONVOLUTION_PLANE, height=0, width=1), _make("Convolve", height=1, width=1)],
        [_fields(Register.POOLING_WINDOW, height=1), pool],
        [_fields(Register.WEIGHT_FORMAT, wide=1), _make("Load_Weights")],
        *(
            [_set(plane.number, plane.pack(**{"height": 1, "width": 1, "output_width": 1, side.name: 0})), pool]
            for side in plane.fields
        ),
    ]
    return [*([way] for way in ways), *empty]


def _beyond_the_unified_buffer(checker: LegalityChecker) -> list[list[Instruction]]:
    last = checker.config.unified_buffer_rows - 1
    plane = _fields(Register.CONVOLUTION_PLANE, height=1, width=2)
    pool = [
        _fields(Register.POOLING_WINDOW, height=1, width=1),
        _fields(Register.POOLING_PLANE, height=2, width=1, output_width=1),
    ]
    narrow, wide = (_fields(Register.SOURCE_FORMAT, wide=wide) for wide in (0, 1))
    activate = {"rows": 1, "from_unified_buffer": 1, "source": last}
    return [
        *([_make(name, unified_buffer=last, rows=2)] for name in HOST_TRANSFERS),
        [_make("Write_Host_Memory", unified_buffer=last + 1, rows=1)],
        [_fields(Register.WEIGHT_FORMAT), _make("Load_Weights", unified_buffer=last - checker.config.size + 2)],
        [_make("MatrixMultiply", unified_buffer=last, rows=2)],
        [_make("MatrixMultiply", unified_buffer=last, rows=1, wide_input=1)],
        [_make("MatrixMultiply", rows=(1 << 32) - 1)],
        [plane, _make("Convolve", unified_buffer=last, height=1, width=1)],
        [plane, _make("Convolve", unified_buffer=last - 2, height=1, width=1, wide_input=1)],
        [_make("Activate", unified_buffer=last, rows=2)],
        [_make("Activate", unified_buffer=last, rows=1, output=OutputFormat.WORD)],
        [_make("Activate", unified_buffer=last - 2, rows=1, output=OutputFormat.INT32)],
        [narrow, _make("Activate", **{**activate, "rows": 2})],
        [wide, _make("Activate", **activate)],
        [narrow, *pool, _make("Activate", pooling=Pooling.AVERAGE, **activate)],
        [
            _fields(Register.OPERAND_ADDRESS, unified_buffer=last),
            _fields(Register.OPERAND_FORMAT, wide=1),
            _make("Activate", rows=1, operand=Operand.MULTIPLY),
        ],
        [_fields(Register.LOAD_PARAMETERS, unified_buffer=last - PARAMETER_ROWS + 2, first=0, count=1)],
        [_fields(Register.LOAD_TABLE, unified_buffer=max(0, last - table_rows(checker.config.size) + 2))],
    ]


def _beyond_the_accumulators(checker: LegalityChecker) -> list[list[Instruction]]:
    last = checker.config.accumulator_rows - 1
    return [
        [_make("MatrixMultiply", accumulator=last, rows=2)],
        [
            _fields(Register.CONVOLUTION_PLANE, height=1, width=1),
            _make("Convolve", accumulator=last, height=2, width=1),
        ],
        [_make("Activate", source=last, rows=2)],
        [
            _fields(Register.POOLING_WINDOW, height=1, width=1),
            _fields(Register.POOLING_PLANE, height=1, width=2, output_width=1),
            _make("Activate", source=last, rows=1, pooling=Pooling.MAX),
        ],
    ]


def _beyond_the_parameters(checker: LegalityChecker) -> list[list[Instruction]]:
    sets = checker.config.parameter_sets
    return [
        [_make("Activate", rows=1, parameters=sets)],
        [_fields(Register.LOAD_PARAMETERS, first=sets, count=1)],
        [_fields(Register.LOAD_PARAMETERS, first=sets - 1, count=2)],
    ]


def _outside_the_host_window(checker: LegalityChecker) -> list[list[Instruction]]:
    config = checker.config
    assert checker.host is not None, "a case has a window"
    beyond = -(-(checker.host.limit - config.size + 1) // config.host_alignment) * config.host_alignment
    return [
        *([_make(name, host=beyond, rows=1)] for name in HOST_TRANSFERS),
        [_make("Read_Host_Memory", host=1 << 63, rows=1)],
    ]


def _outside_the_weight_window(checker: LegalityChecker) -> list[list[Instruction]]:
    config = checker.config
    assert checker.weights is not None, "a case has a window"
    beyond = -(-(checker.weights.limit - config.tile_bytes + 1) // config.weight_alignment) * config.weight_alignment
    return [
        [_make("Read_Weights", weights=beyond, tiles=1)],
        [_make("Read_Weights", weights=0, tiles=(1 << 24) - 1)],
    ]


def _overlaps(checker: LegalityChecker) -> list[list[Instruction]]:
    last = checker.config.unified_buffer_rows - 1
    byte_source, byte_operand = _fields(Register.SOURCE_FORMAT), _fields(Register.OPERAND_FORMAT)
    word_source = _fields(Register.SOURCE_FORMAT, wide=1)
    operand_at = {row: _fields(Register.OPERAND_ADDRESS, unified_buffer=row) for row in (0, last)}
    plane = [
        _fields(Register.POOLING_WINDOW, height=1, width=1),
        _fields(Register.POOLING_PLANE, height=3, width=3, output_width=1),
    ]
    from_buffer = {"rows": 1, "from_unified_buffer": 1}
    return [
        [byte_source, _make("Activate", unified_buffer=5, source=5, **from_buffer)],
        [word_source, _make("Activate", unified_buffer=6, source=5, **from_buffer)],
        [byte_source, _make("Activate", unified_buffer=2, source=5, output=OutputFormat.INT32, **from_buffer)],
        [byte_source, *plane, _make("Activate", unified_buffer=8, pooling=Pooling.MAX, **from_buffer)],
        [byte_operand, operand_at[0], _make("Activate", rows=1, operand=Operand.ADD)],
        [byte_operand, operand_at[last], _make("Activate", unified_buffer=last, rows=1, operand=Operand.MULTIPLY)],
    ]


_WAYS = {
    FaultCode.UNIMPLEMENTED: _unimplemented,
    FaultCode.ILLEGAL_VALUE: _illegal_values,
    FaultCode.UNIFIED_BUFFER_RANGE: _beyond_the_unified_buffer,
    FaultCode.ACCUMULATOR_RANGE: _beyond_the_accumulators,
    FaultCode.PARAMETER_RANGE: _beyond_the_parameters,
    FaultCode.HOST_WINDOW: _outside_the_host_window,
    FaultCode.WEIGHT_WINDOW: _outside_the_weight_window,
    FaultCode.UNIFIED_BUFFER_OVERLAP: _overlaps,
}
"""Functions for the codes that do not depend on tiles; each returns all ways to raise its code in a state."""
