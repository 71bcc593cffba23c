"""A small machine with memory windows, and programs checked on it."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Register, format_named, register_format
from openmxu.arch.legality import LegalityChecker, Window

# S = 8; rows, tiles and beats are 8, 64 and 8 bytes.
CONFIG = Config(profile="full", unified_buffer_rows=100, accumulator_rows=50, parameter_sets=10, weight_queue_depth=3)
HOST = Window(0x1000, 0x2000)
WEIGHTS = Window(0x4000, 0x5000)


def make(name: str, **values: int) -> Instruction:
    return format_named(name)(**values)


def configure(register: Register, value: int) -> Instruction:
    return make("set_configuration", register=register, value=value)


def fields(register: Register, **values: int) -> Instruction:
    """Set a configuration register, given the values of its fields."""
    return configure(register, register_format(register).pack(**values))


def faults(*instructions: Instruction, config: Config = CONFIG) -> list[FaultCode]:
    checker = LegalityChecker(config, host=HOST, weights=WEIGHTS)
    return [checker.check(instruction) for instruction in instructions]


def fault(*instructions: Instruction) -> FaultCode:
    """The fault of the last instruction; those before it must be legal."""
    *before, last = faults(*instructions)
    assert before == [FaultCode.NONE] * len(before)
    return last


def parameters(unified_buffer: int, first: int, count: int) -> Instruction:
    """Load parameter sets."""
    return configure(Register.LOAD_PARAMETERS, unified_buffer | first << 24 | count << 40)


def convolution_plane(height: int, width: int) -> Instruction:
    """Set a plane with strides of 1."""
    return fields(Register.CONVOLUTION_PLANE, height=height, width=width, stride_y=1, stride_x=1)


def pooling(height: int, width: int, *, output_width: int = 1, window: tuple[int, int] = (2, 2)) -> list[Instruction]:
    """Set a plane and a window."""
    return [
        fields(Register.POOLING_PLANE, height=height, width=width, output_width=output_width),
        fields(Register.POOLING_WINDOW, height=window[0], width=window[1]),
    ]


LOAD_WEIGHTS = make("load_weights")
READ_WEIGHTS = make("read_weights", tiles=1, weights=0x4000)
NEXT_TILE = make("matrixmultiply", rows=1, next_tile=1)
REUSE_TILE = make("matrixmultiply", rows=1)
