"""Fixed programs whose cycles are counted: pairs of instructions that conflict in a memory, and whole layers.

Each fits every configuration of the lockstep tests. Nothing in them is random, and their memories never stall, so that
their counters depend on the hardware only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import Instruction, Operand, OutputFormat, Pooling, Register, format_named
from tb.directed.instructions import load_tile, set_register, synchronize
from tb.lockstep.case import HALT

__all__ = ["PLACES", "accumulator_pairs", "host_memory", "layers", "setup", "unified_buffer_pairs", "weight_memory"]

ROWS = 4
"""Rows of every access in a pair."""

PLACES = {"far": 2 * ROWS, "behind": ROWS, "last": ROWS - 1, "same": 0, "first": 1 - ROWS, "before": -ROWS}
"""Distance from the first row of the first access to that of the second. In ``last``, ``same`` and ``first`` they
overlap."""

_TILES = 8


def host_memory(config: Config) -> NDArray[np.uint8]:
    """Host memory for every program here."""
    return np.random.default_rng(1).integers(0, 256, 64 * 16 * config.size, np.uint8)


def weight_memory(config: Config) -> NDArray[np.uint8]:
    """Weight memory for every program here."""
    return np.random.default_rng(2).integers(0, 256, _TILES * config.tile_bytes, np.uint8)


@dataclass(frozen=True)
class _Access:
    """An instruction with an access of ``ROWS`` rows at a variable address; its other accesses do not conflict."""

    name: str
    make: Callable[[int], Instruction]


def setup() -> list[Instruction]:
    """The program to run before the pairs; it sets the registers."""
    return [
        set_register(Register.INPUT_FORMAT, zero_point=3),
        set_register(Register.OUTPUT_FORMAT, zero_point=0, minimum=-128, maximum=127),
        set_register(Register.CONVOLUTION_PLANE, height=2, width=ROWS // 2, stride_y=1, stride_x=1),
        set_register(Register.POOLING_PLANE, height=2, width=ROWS // 2, output_width=ROWS // 2),
        set_register(Register.POOLING_WINDOW, height=2, width=1, stride_y=1, stride_x=1),
        set_register(Register.OPERAND_ADDRESS, unified_buffer=0),
        set_register(Register.OPERAND_SCALE, scale=0x3F000000),
        HALT,
    ]


def unified_buffer_pairs(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """Two instructions that use adjacent or common unified buffer rows, in all of ``PLACES``: name and program."""
    activate, multiply = format_named("activate"), format_named("matrixmultiply")
    other = config.unified_buffer_rows - ROWS  # rows for the results of instructions that only read in this test
    accesses = [
        _Access("host_read", lambda row: format_named("read_host_memory")(unified_buffer=row, rows=ROWS)),
        _Access("host_write", lambda row: format_named("write_host_memory")(unified_buffer=row, rows=ROWS)),
        _Access("multiply", lambda row: multiply(unified_buffer=row, rows=ROWS)),
        _Access("convolve", lambda row: format_named("convolve")(unified_buffer=row, height=2, width=ROWS // 2)),
        _Access("activate", lambda row: activate(unified_buffer=row, source=ROWS, rows=ROWS)),
        _Access("source", lambda row: activate(unified_buffer=other, source=row, rows=ROWS, from_unified_buffer=1)),
        _Access(
            "pooled",
            lambda row: activate(unified_buffer=other, source=row, rows=2, from_unified_buffer=1, pooling=Pooling.MAX),
        ),
        _Access("operand", lambda row: set_register(Register.OPERAND_ADDRESS, unified_buffer=row)),
        _Access("parameters", lambda row: set_register(Register.LOAD_PARAMETERS, unified_buffer=row, count=1)),
    ]
    base = 2 * ROWS
    for first in accesses:
        for second in accesses:
            for distance in PLACES.values():
                program = [*_use(first, base, other), *_use(second, base + distance, other)]
                yield f"{first.name} {second.name}", [*load_tile(config), *program, HALT]


def _use(access: _Access, row: int, other: int) -> list[Instruction]:
    instruction = access.make(row)
    if access.name != "operand":
        return [instruction]
    # Setting the register reads nothing; the next instruction does.
    return [
        instruction,
        format_named("activate")(unified_buffer=other, source=ROWS, rows=ROWS, operand=Operand.MULTIPLY),
    ]


def accumulator_pairs(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """Two instructions that use adjacent or common accumulator rows; each uses two of them."""
    rows = 2
    multiply, convolve, activate = (format_named(name) for name in ("matrixmultiply", "convolve", "activate"))
    accesses = [
        _Access("overwrite", lambda row: multiply(accumulator=row, rows=rows)),
        _Access("accumulate", lambda row: multiply(accumulator=row, rows=rows, accumulate=1)),
        _Access("next_tile", lambda row: multiply(accumulator=row, rows=rows, next_tile=1)),
        _Access("convolve", lambda row: convolve(accumulator=row, height=2, width=1, accumulate=1)),
        _Access("wide", lambda row: multiply(accumulator=row, rows=rows, wide_input=1)),
        _Access("activate", lambda row: activate(unified_buffer=12, source=row, rows=rows)),
        _Access(
            "int32", lambda row: activate(unified_buffer=3 * ROWS, source=row, rows=rows, output=OutputFormat.INT32)
        ),
    ]
    distances = (2 * rows, rows, rows - 1, 0, 1 - rows, -rows)
    for first in accesses:
        for second in accesses:
            for distance in distances:
                weights = [format_named("read_weights")(tiles=2, weights=config.tile_bytes), synchronize()]
                program = [*weights, first.make(3), second.make(3 + distance), HALT]
                yield f"{first.name} {second.name}", [*load_tile(config), *program]


def layers(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """Programs in which everything overlaps that can overlap."""
    yield "product", _product(config, wide=False)
    yield "wide product", _product(config, wide=True)
    yield "convolution", _convolution(config)
    yield "element-wise", _element_wise(config)
    yield "transfers", _transfers(config)
    yield "side by side", _side_by_side(config)
    yield "full queues", _full_queues(config)
    yield "late tiles", _late_tiles(config)
    yield "windows", _windows(config)


def _product(config: Config, *, wide: bool) -> list[Instruction]:
    """Blocks of rows, each multiplied with two tiles, with double buffering in every memory."""
    rows = 4
    input_rows = rows << wide
    program = [
        set_register(Register.INPUT_FORMAT, zero_point=-5, signed=1),
        set_register(Register.WEIGHT_FORMAT, wide=1) if wide else set_register(Register.WEIGHT_FORMAT, zero_point=7),
        set_register(Register.OUTPUT_FORMAT, zero_point=10, minimum=0, maximum=255),
        format_named("read_host_memory")(unified_buffer=0, rows=PARAMETER_ROWS),
        set_register(Register.LOAD_PARAMETERS, unified_buffer=0, count=1),
    ]
    for block in range(6):
        half = block % 2
        inputs, outputs, sums = half * input_rows, 20 + half * 2 * rows, half * rows
        program += [
            format_named("read_host_memory")(unified_buffer=inputs, rows=input_rows, host=block * 8 * config.size),
            format_named("read_weights")(tiles=2, weights=block % 3 * 2 * config.tile_bytes),
            *(
                format_named("matrixmultiply")(
                    unified_buffer=inputs,
                    accumulator=sums,
                    rows=rows,
                    next_tile=1,
                    accumulate=number,
                    wide_input=wide,
                    wide_weights=wide,
                )
                for number in range(1 if wide else 2)
            ),
            format_named("activate")(
                unified_buffer=outputs, source=sums, rows=rows, output=OutputFormat.WORD if wide else OutputFormat.BYTE
            ),
            format_named("write_host_memory")(
                unified_buffer=outputs, rows=rows << wide, host=(64 + block * 16) * config.size
            ),
        ]
    return [*program, HALT]


def _convolution(config: Config) -> list[Instruction]:
    """A 3 × 3 convolution with padding over a small plane, then average pooling, several times."""
    height, width = 4, 2
    program = [
        set_register(Register.CONVOLUTION_PLANE, height=height, width=width, stride_y=1, stride_x=1),
        set_register(Register.POOLING_PLANE, height=height, width=width, output_width=1),
        set_register(Register.POOLING_WINDOW, height=2, width=2, stride_y=2, stride_x=1),
        set_register(Register.OUTPUT_FORMAT, zero_point=-3, minimum=-128, maximum=100),
    ]
    for image in range(3):
        program.append(
            format_named("read_host_memory")(unified_buffer=8 * image, rows=height * width, host=32 * config.size)
        )
        for kernel_row in (-1, 0, 1):
            program.append(format_named("read_weights")(tiles=3, weights=kernel_row % 2 * config.tile_bytes))
            program += [
                format_named("convolve")(
                    unified_buffer=8 * image,
                    accumulator=0,
                    height=height,
                    width=width,
                    dy=kernel_row,
                    dx=column,
                    next_tile=1,
                    accumulate=(kernel_row, column) != (-1, -1),
                )
                for column in (-1, 0, 1)
            ]
        program.append(
            format_named("activate")(
                unified_buffer=30 + 2 * image, source=0, rows=2, pooling=Pooling.AVERAGE, output=OutputFormat.BYTE
            )
        )
    return [*program, format_named("write_host_memory")(unified_buffer=30, rows=6), HALT]


def _element_wise(config: Config) -> list[Instruction]:
    """Sums and products of unified buffer rows in every width."""
    program = [
        format_named("read_host_memory")(unified_buffer=0, rows=24),
        set_register(Register.OPERAND_SCALE, scale=0x3E800000),
        set_register(Register.OUTPUT_FORMAT, zero_point=0, minimum=-30000, maximum=30000),
        set_register(Register.OPERAND_ADDRESS, unified_buffer=8),
        set_register(Register.LOAD_PARAMETERS, unified_buffer=16, count=1),
    ]
    for number, (source_wide, operand_wide) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        program += [
            set_register(Register.SOURCE_FORMAT, zero_point=9, wide=source_wide),
            set_register(Register.OPERAND_FORMAT, zero_point=-9, signed=1, wide=operand_wide),
        ]
        for output in OutputFormat:
            operand = Operand.MULTIPLY if output is OutputFormat.INT32 else (Operand.ADD, Operand.MULTIPLY)[number % 2]
            program.append(
                format_named("activate")(
                    unified_buffer=24, source=0, rows=4, from_unified_buffer=1, output=output, operand=operand
                )
            )
        program.append(format_named("write_host_memory")(unified_buffer=24, rows=16, host=8 * config.size))
    return [*program, format_named("debug_tag")(tag=3), format_named("interrupt_host")(tag=4), HALT]


def _transfers(config: Config) -> list[Instruction]:
    """Host transfers of every kind and several lengths, with adjacent and overlapping rows."""
    program = [set_register(Register.HOST_STRIDE, stride=3 * config.size)]
    for length in (1, 2, 3, 7, 12):
        program += [
            format_named("read_host_memory")(unified_buffer=1, rows=length, host=config.host_alignment),
            format_named("read_host_memory_alternate")(unified_buffer=13, rows=length, host=4 * config.size),
            format_named("write_host_memory_alternate")(unified_buffer=1, rows=length, host=100 * config.size),
            format_named("write_host_memory")(unified_buffer=2, rows=length + 12, host=60 * config.size),
            format_named("host_synchronize")(tag=length),
        ]
    return [*program, HALT]


def _side_by_side(config: Config) -> list[Instruction]:
    """Units that share nothing but the banks, with accesses to different rows and of different lengths."""
    multiply, activate = format_named("matrixmultiply"), format_named("activate")
    program = [
        set_register(Register.INPUT_FORMAT, zero_point=1),
        set_register(Register.SOURCE_FORMAT, zero_point=2),
        set_register(Register.OPERAND_FORMAT, zero_point=1),
        set_register(Register.OPERAND_SCALE, scale=0x3F800000),
        set_register(Register.OPERAND_ADDRESS, unified_buffer=13),
        set_register(Register.OUTPUT_FORMAT, zero_point=0, minimum=-128, maximum=127),
        format_named("read_host_memory")(unified_buffer=0, rows=20),
        format_named("read_weights")(tiles=1),
        multiply(rows=1, next_tile=1),
        synchronize(),
    ]
    for number in range(8):
        operand = (Operand.NONE, Operand.ADD, Operand.NONE, Operand.MULTIPLY)[number % 4]
        program += [
            multiply(unified_buffer=number % 3, accumulator=number % 2, rows=8, accumulate=number // 2 % 2),
            activate(
                unified_buffer=20 + number % 2, source=8, rows=3 + number % 3, from_unified_buffer=1, operand=operand
            ),
            format_named("read_host_memory")(unified_buffer=28 + number % 4, rows=3, host=32 * config.size),
            format_named("write_host_memory")(unified_buffer=35, rows=1 + number % 3, host=64 * config.size),
        ]
    return [*program, HALT]


def _full_queues(config: Config) -> list[Instruction]:
    """More instructions than a queue holds, all of which wait for the instruction before them."""
    read, write, multiply, activate = (
        format_named(name) for name in ("read_host_memory", "write_host_memory", "matrixmultiply", "activate")
    )
    many = 18
    program = [
        set_register(Register.OUTPUT_FORMAT, zero_point=0, minimum=-128, maximum=127),
        format_named("read_weights")(tiles=1),
        multiply(rows=1, next_tile=1),
    ]
    for waiting in (
        [write(unified_buffer=number % 8, rows=1, host=(32 + number) * config.size) for number in range(many)],
        [multiply(unified_buffer=number % 8, rows=1, accumulator=number % 8) for number in range(many)],
        [activate(unified_buffer=20, source=number % 8, rows=1, from_unified_buffer=1) for number in range(many)],
    ):
        program += [read(unified_buffer=0, rows=12), read(unified_buffer=0, rows=12, host=16 * config.size), *waiting]
    program += [multiply(unified_buffer=0, rows=8) for _ in range(3)]
    program += [read(unified_buffer=number % 8, rows=1, host=number * config.size) for number in range(many)]
    return [*program, format_named("debug_tag")(tag=7), HALT]


def _late_tiles(config: Config) -> list[Instruction]:
    """Multiplications whose tile has not arrived yet, followed by others that differ in all fields."""
    multiply, read_weights = format_named("matrixmultiply"), format_named("read_weights")
    program = [format_named("read_host_memory")(unified_buffer=0, rows=20), synchronize()]
    for number in range(8):
        program += [
            read_weights(tiles=1, weights=number % 4 * config.tile_bytes),
            multiply(unified_buffer=number, rows=1, accumulator=number % 3, next_tile=1),
            multiply(unified_buffer=2 * number, rows=1, accumulator=3 + number % 5, accumulate=number % 2),
            multiply(unified_buffer=1, rows=1 + number % 3, accumulator=number % 6, accumulate=1, wide_input=1),
        ]
    return [*program, HALT]


def _windows(config: Config) -> list[Instruction]:
    """Windows that reach far beyond their plane, whose size only affects the cycle count."""
    program = [
        format_named("read_host_memory")(unified_buffer=0, rows=4),
        set_register(Register.POOLING_PLANE, height=2, width=2, output_width=2),
    ]
    for bit in range(10):
        for height, width in ((1, (1 << bit) + 1), ((1 << bit) + 1, 1)):
            program += [
                set_register(Register.POOLING_WINDOW, height=height, width=width, stride_x=1),
                format_named("activate")(
                    unified_buffer=8, rows=2, from_unified_buffer=1, pooling=Pooling.MAX, output=OutputFormat.BYTE
                ),
            ]
    return [*program, HALT]
