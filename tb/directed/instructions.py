"""Instructions that many directed programs contain."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction, Register, Unit, format_named, register_format

__all__ = ["load_tile", "set_register", "synchronize"]


def set_register(register: Register, **values: int) -> Instruction:
    """Set_Configuration with these fields of the register; the others are 0."""
    return format_named("set_configuration")(register=register, value=register_format(register).pack(**values))


def synchronize(*units: Unit) -> Instruction:
    """Wait for these units; without any, for all."""
    return format_named("synchronize")(units=sum(1 << unit for unit in units or Unit))


def load_tile(config: Config) -> list[Instruction]:
    """Load a tile into the array, since Halt discards it; this uses the last accumulator row."""
    return [
        format_named("read_weights")(tiles=1),
        format_named("matrixmultiply")(rows=1, next_tile=1, accumulator=config.accumulator_rows - 1),
        synchronize(),
    ]
