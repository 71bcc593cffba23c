"""Random instructions of one unit, as many as its queue holds and more, which wait for another unit."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Operand, Register, format_named
from openmxu.arch.legality import LegalityChecker
from tb.directed.extreme_cases import plain_memories, settings, use
from tb.directed.instructions import load_tile, set_register
from tb.lockstep import Case, generate
from tb.lockstep.case import HALT
from tb.lockstep.programs.environment import LONG_BURST, environment

__all__ = ["full_queues"]

_CASES = 6
"""Programs of each kind and unit."""

_STEPS = 250
"""Steps of a random program of all units' instructions, from which those of one unit are taken."""

_STALLS = 10
"""Environments in which the memory of weights stalls or not."""

_LATE = 12
"""Environments in which each memory may take no request for long."""

_LONG = 8
"""Long instructions that the others wait for."""

_ONE = 0x3F800000
"""1.0 as a float32."""

_OPCODES = {
    "host read": {Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE},
    "host write": {Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE},
    "matrix": {Opcode.READ_WEIGHTS, Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE},
    "activation": {Opcode.ACTIVATE},
}


def full_queues(config: Config, seed: int) -> Iterator[Case]:
    """For each unit, programs with the data, the registers and the unit's instructions of random ones, and others with
    values of all sizes; some with as many Read_Weights as fit, and some that overwrite the operand of an activation."""
    yield from (_weights_ahead(config, number) for number in range(seed, seed + _STALLS))
    late = (number for number in itertools.count(seed) if environment(number).cycles == LONG_BURST)
    yield from (_weights_late(config, number) for number in itertools.islice(late, _LATE))
    yield _operands_overwritten(config, seed)
    for number, (unit, opcodes) in enumerate(_OPCODES.items()):
        for place in range(_CASES):
            case = generate(config, 1000 * seed + _CASES * number + place, _STEPS)
            kept = (item for item in case.instructions if _belongs(item, opcodes, loads=unit == "activation"))
            program = [*load_tile(config), *_blocked(config, unit), *kept]
            yield case.with_instructions([*_legal(case.checker(), program), HALT])
            yield _values_of_all_sizes(config, unit, case.seed)


def _values_of_all_sizes(config: Config, unit: str, seed: int) -> Case:
    """Instructions of one unit, each after a few registers are set, with more than plain values in all fields."""
    rng = np.random.default_rng(seed)
    setup, host, weights = plain_memories(config, rng)
    case = Case(config, (), host, weights, seed)
    checker = case.checker()
    program = list(_legal(checker, [*setup, *load_tile(config), *_blocked(config, unit)]))
    opcodes = sorted(_OPCODES[unit] - {Opcode.READ_WEIGHTS})
    for _ in range(2 * config.command_queue_depth):
        instructions = (*itertools.islice(settings(config, rng), 2), use(config, checker, rng, opcodes))
        program += _legal(checker, [item for item in instructions if item != HALT])
    return case.with_instructions([*program, HALT])


def _weights_ahead(config: Config, seed: int) -> Case:
    """Matrix instructions that wait for others, each with a tile of its own, and as many Read_Weights as fit."""
    before = [*load_tile(config), *_blocked(config, "matrix")]
    return _many_tiles(config, seed, config.command_queue_depth - 1, before, wide=False)


def _weights_late(config: Config, seed: int) -> Case:
    """Matrix instructions that wait for their tiles, two each, and more Read_Weights than the fetcher's queue holds."""
    return _many_tiles(config, seed, config.command_queue_depth, [], wide=True)


def _many_tiles(config: Config, seed: int, waiting: int, before: list[Instruction], *, wide: bool) -> Case:
    rng = np.random.default_rng(seed)
    step = max(config.tile_bytes, config.weight_data_bytes)
    multiply = functools.partial(format_named("matrixmultiply"), rows=1, next_tile=1, accumulate=1, wide_weights=wide)
    ahead, count = waiting << wide, (waiting << wide) + config.weight_queue_depth
    loads = [format_named("read_weights")(tiles=1, weights=index * step) for index in range(count)]
    uses = [multiply(accumulator=index % config.accumulator_rows) for index in range(count >> wide)]
    together = [item for index in range(waiting) for item in (*loads[index << wide : index + 1 << wide], uses[index])]
    program = [
        format_named("read_host_memory")(rows=1),
        *before,
        *together,
        *loads[ahead:],
        *uses[waiting:],
        HALT,
    ]
    host, weights = (rng.integers(0, 256, size, np.uint8) for size in (4096, count * step))
    return Case(config, tuple(program), host, weights, seed)


def _operands_overwritten(config: Config, seed: int) -> Case:
    """Activations fill their queue, and a host read overwrites the operand of the oldest one, which it must wait for.

    By then the register has another operand's address, which differs in a single bit. Results end at either of two
    rows, between which all bits of an address change.
    """
    rng = np.random.default_rng(seed)
    rows = config.unified_buffer_rows
    half = rows // 2
    activate, multiply, read = (format_named(name) for name in ("activate", "matrixmultiply", "read_host_memory"))
    bits = [1 << bit for bit in range(half.bit_length())]
    program: list[Instruction] = []
    pairs = [(bit, 0) for bit in bits] + [(0, bit) for bit in bits]
    for (operand, other), result in itertools.product(pairs, (rows - 1, rows - 2)):
        factors = 0 if operand >= half else half
        program += [
            read(rows=rows),
            *load_tile(config),
            set_register(Register.OUTPUT_FORMAT, minimum=-(1 << 15), maximum=(1 << 15) - 1),
            *_LONG * [multiply(unified_buffer=factors, rows=min(half, config.accumulator_rows))],
            set_register(Register.OPERAND_SCALE, scale=_ONE),
            set_register(Register.OPERAND_ADDRESS, unified_buffer=operand),
            activate(unified_buffer=result, rows=1, operand=Operand.ADD),
            set_register(Register.OPERAND_ADDRESS, unified_buffer=other),
            *(config.command_queue_depth - 1) * [activate(unified_buffer=rows - 3, rows=1)],
            read(unified_buffer=operand, rows=1, host=rows * config.size),
            HALT,
        ]
    host, weights = (rng.integers(0, 256, size, np.uint8) for size in ((rows + 1) * config.size, 4096))
    return Case(config, tuple(program), host, weights, seed, separate=True)


def _belongs(instruction: Instruction, opcodes: set[Opcode], *, loads: bool) -> bool:
    """Whether it is one of these instructions, or sets a register; ``loads`` keeps the loads of parameters and tables,
    which the activation unit executes."""
    opcode = instruction.format and instruction.format.opcode
    if opcode is not Opcode.SET_CONFIGURATION:
        return opcode in opcodes
    return loads or instruction["register"] not in (Register.LOAD_PARAMETERS, Register.LOAD_TABLE)


def _blocked(config: Config, unit: str) -> list[Instruction]:
    """Long instructions of another unit, and one of the unit that waits for them, and so holds up all later ones."""
    half = config.unified_buffer_rows // 2
    activate, multiply = format_named("activate"), format_named("matrixmultiply")
    if unit == "activation":
        return [*_LONG * [multiply(rows=min(half, config.accumulator_rows))], activate(rows=1)]
    first = {
        "host read": format_named("read_host_memory")(rows=1),
        "host write": format_named("write_host_memory")(rows=1),
        "matrix": multiply(rows=1),
    }
    return [*_LONG * [activate(source=half, rows=half, from_unified_buffer=1)], first[unit]]


def _legal(checker: LegalityChecker, program: list[Instruction]) -> Iterator[Instruction]:
    """Without instructions that would fault, for example because others are missing."""
    return (instruction for instruction in program if checker.check(instruction) is FaultCode.NONE)
