"""The program by which a core clears its memories."""

from __future__ import annotations

from collections.abc import Iterator

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.arch.isa import REGISTERS, Instruction, Register, format_named

__all__ = ["scrub_program"]

_MOST_SETS = (1 << 16) - 1
"""The largest number of parameter sets in one LOAD_PARAMETERS."""


def scrub_program(config: Config) -> tuple[Instruction, ...]:
    """Instructions that leave zeros in the unified buffer, the accumulators, the parameter sets and the tables.

    Activate clamps every value to 0, because configuration registers are 0, and the products of the unified buffer's
    zeros are 0 for any weights in the array. Parameter sets or tables that the unified buffer is too small to load are
    left out, as no other program can have loaded them.

    Where the core has a scrubber, this is its program: it has cleared the configuration registers before, and the
    MatrixMultiply uses the weights that are in the array although no tile was taken, which is legal in this program
    alone. Without a scrubber, a driver executes the program with a window of
    :attr:`~openmxu.arch.config.Config.tile_bytes` of weight memory.
    """
    return (
        *_preparations(config),
        *_unified_buffer(config),
        *_accumulators(config),
        *_parameters(config),
        *_tables(config),
        format_named("Halt")(),
    )


def _preparations(config: Config) -> Iterator[Instruction]:
    """Instructions that only a core without scrubber needs: they clear configuration registers and take a tile."""
    if config.features.has_scrubber:
        return
    for register in config.features.registers:
        if not register.is_action:
            yield _set_configuration(register.number)
    yield format_named("Read_Weights")(tiles=1)
    yield format_named("MatrixMultiply")(next_tile=1, rows=1)


def _pieces(total: int, most: int) -> Iterator[tuple[int, int]]:
    """First element and size of pieces of at most ``most``."""
    return ((first, min(most, total - first)) for first in range(0, total, most))


def _unified_buffer(config: Config) -> Iterator[Instruction]:
    for first, rows in _pieces(config.unified_buffer_rows, config.accumulator_rows):
        yield format_named("Activate")(unified_buffer=first, rows=rows)


def _accumulators(config: Config) -> Iterator[Instruction]:
    for first, rows in _pieces(config.accumulator_rows, config.unified_buffer_rows):
        yield format_named("MatrixMultiply")(accumulator=first, rows=rows)


def _parameters(config: Config) -> Iterator[Instruction]:
    most = min(config.unified_buffer_rows // PARAMETER_ROWS, _MOST_SETS)
    if most:
        for first, count in _pieces(config.parameter_sets, most):
            yield _set_configuration(Register.LOAD_PARAMETERS, first=first, count=count)


def _tables(config: Config) -> Iterator[Instruction]:
    if config.features.register(Register.LOAD_TABLE) and table_rows(config.size) <= config.unified_buffer_rows:
        yield from (_set_configuration(Register.LOAD_TABLE, number=number) for number in range(TABLES))


def _set_configuration(register: Register, **fields: int) -> Instruction:
    value = REGISTERS[register].pack(**fields)
    return format_named("Set_Configuration")(register=register, value=value)
