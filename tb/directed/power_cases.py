"""Cases in which every field of every instruction and register is a power of two, so that each bit is tested alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.isa import (
    FORMATS,
    Field,
    Instruction,
    Opcode,
    Operand,
    Pooling,
    Register,
    format_named,
    register_format,
)
from tb.directed.extreme_cases import plain_memories
from tb.directed.instructions import set_register
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["many_tiles", "powers_of_two"]

_PLAIN = {
    Register.INPUT_FORMAT: {},
    Register.WEIGHT_FORMAT: {},
    Register.OUTPUT_FORMAT: {"maximum": 255},
    Register.HOST_STRIDE: {"stride": 64},
    Register.CONVOLUTION_PLANE: {"height": 2, "width": 3, "stride_y": 1, "stride_x": 1},
    Register.POOLING_WINDOW: {"height": 1, "width": 2, "stride_y": 1, "stride_x": 1},
    Register.POOLING_PLANE: {"height": 2, "width": 3, "output_width": 2},
    Register.OPERAND_ADDRESS: {"unified_buffer": 24},
    Register.OPERAND_SCALE: {"scale": 0x3F800000},
    Register.SOURCE_FORMAT: {},
    Register.OPERAND_FORMAT: {},
}
"""Register values with which the smallest instructions are legal."""

_LONGEST_WINDOW = 12
"""Exponent of the largest window; larger ones take too long."""

_TILES = 300


def powers_of_two(config: Config, seed: int) -> Iterator[Case]:
    """One case each for instructions, for registers, and for planes whose number of positions is a power of two."""
    rng = np.random.default_rng(seed)
    setup, host, weights = plain_memories(config, rng)
    registers = [set_register(register, **values) for register, values in _PLAIN.items()]
    for part in (_instructions(config), _registers(config), _products(config)):
        yield Case(config, (*setup, *registers, HALT, *part), host, weights, seed, separate=True)


def many_tiles(config: Config, seed: int) -> Case:
    """A Read_Weights of so many tiles that a narrow counter would overflow; all are taken, and then one more."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 256, _TILES * config.tile_bytes, np.uint8)
    take = format_named("matrixmultiply")(rows=1, next_tile=1, accumulate=1)
    program = [
        format_named("read_host_memory")(rows=1),
        format_named("read_weights")(tiles=_TILES),
        *(take for _ in range(_TILES + 1)),
        HALT,
        format_named("read_weights")(tiles=2),
        *(take for _ in range(3)),
        HALT,
    ]
    return Case(config, tuple(program), rng.integers(0, 256, config.size, np.uint8), weights, seed)


def _tiles() -> list[Instruction]:
    return [format_named("read_weights")(tiles=3), format_named("matrixmultiply")(rows=1, next_tile=1)]


def _smallest() -> dict[Opcode, list[dict[str, int]]]:
    """For each kind of instruction, field values with which it is legal."""
    transfer = [{"rows": 1}]
    return {
        Opcode.READ_HOST_MEMORY: transfer,
        Opcode.READ_HOST_MEMORY_ALTERNATE: transfer,
        Opcode.WRITE_HOST_MEMORY: transfer,
        Opcode.WRITE_HOST_MEMORY_ALTERNATE: transfer,
        Opcode.READ_WEIGHTS: [{"tiles": 1}],
        Opcode.MATRIX_MULTIPLY: [{"rows": 1}],
        Opcode.CONVOLVE: [{"height": 1, "width": 1}],
        Opcode.ACTIVATE: [
            {"rows": 1, "unified_buffer": 16},
            {"rows": 1, "unified_buffer": 16, "from_unified_buffer": 1},
            {"rows": 1, "unified_buffer": 16, "pooling": Pooling.MAX},
            {"rows": 1, "unified_buffer": 16, "operand": Operand.ADD},
            {"rows": 1, "unified_buffer": 16, "from_unified_buffer": 1, "operand": Operand.MULTIPLY},
        ],
    }


def _instructions(config: Config) -> Iterator[Instruction]:
    for format in FORMATS:
        if format.opcode in (Opcode.HALT, Opcode.SET_CONFIGURATION):
            continue
        for smallest in _smallest().get(format.opcode, [{}]):
            for field in format.fields:
                for bit in range(field.width):
                    value = field.extract(1 << (field.offset + bit))
                    if format.opcode is not Opcode.READ_WEIGHTS:
                        yield from _tiles()
                    yield format(**smallest | {field.name: value})
                    yield HALT


def _registers(config: Config) -> Iterator[Instruction]:
    """For each register and bit: set it, then use other registers, then use this one."""
    formats = {format.opcode: format for format in FORMATS}
    nop = format_named("nop")()
    uses = [
        formats[opcode](**values | ({"rows": 4} if "rows" in values else {"height": 2, "width": 2}))
        for opcode, several in _smallest().items()
        if opcode is not Opcode.READ_WEIGHTS
        for values in several
    ]
    users = {
        Register.INPUT_FORMAT: [Opcode.MATRIX_MULTIPLY],
        Register.WEIGHT_FORMAT: [Opcode.MATRIX_MULTIPLY],
        Register.HOST_STRIDE: [Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE],
        Register.CONVOLUTION_PLANE: [Opcode.CONVOLVE],
    }
    for register, plain in _PLAIN.items():
        for field in register_format(register).fields:
            for value in _values(register, field):
                yield set_register(register, **plain | {field.name: value})
                yield HALT
                own = [use for use in uses if use.format.opcode in users.get(register, [Opcode.ACTIVATE])]
                # No other register may have changed. These instructions are legal whatever this register holds.
                others = [use for use in uses if use not in own]
                yield from [*_tiles(), *others, HALT, *_tiles(), nop, *others[::-1], HALT]
                for use in own:
                    yield from [*_tiles(), use, HALT]
        yield set_register(register, **plain)
    for register in (Register.LOAD_PARAMETERS, Register.LOAD_TABLE):
        least = {"count": 1} if register is Register.LOAD_PARAMETERS else {}
        for field in register_format(register).fields:
            for bit in range(field.width):
                yield set_register(register, **least | {field.name: field.extract(1 << (field.offset + bit))})
                yield HALT


def _values(register: Register, field: Field) -> Iterator[int]:
    """Powers of two. Sizes of windows and planes also get 2**n + 1, which is 1 if bit n is lost."""
    for bit in range(field.width):
        if register is Register.POOLING_WINDOW and field.name in ("height", "width") and bit > _LONGEST_WINDOW:
            continue
        yield field.extract(1 << (field.offset + bit))
        if register in (Register.POOLING_WINDOW, Register.POOLING_PLANE) and bit:
            yield (1 << bit) + 1


def _products(config: Config) -> Iterator[Instruction]:
    """Planes with 2**n positions, whose height and width are powers of two."""
    convolve, activate = format_named("convolve"), format_named("activate")
    for bits in range(31):
        for first in sorted({max(0, bits - 15), bits // 2, min(15, bits)}):
            height, width = 1 << first, 1 << (bits - first)
            yield set_register(Register.CONVOLUTION_PLANE, **_PLAIN[Register.CONVOLUTION_PLANE])
            yield from [*_tiles(), convolve(height=height, width=width), HALT]
            yield set_register(Register.CONVOLUTION_PLANE, height=height, width=width, stride_y=1, stride_x=1)
            yield from _tiles()
            yield convolve(height=1, width=1)
            yield HALT
            yield set_register(Register.POOLING_PLANE, height=height, width=width, output_width=1)
            for source in (0, 1):
                yield activate(unified_buffer=16, rows=1, pooling=Pooling.MAX, from_unified_buffer=source)
                yield HALT
