"""The fields of all instructions of a program at once, and the configuration registers at each place in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import FORMATS, REGISTERS, Field, Instruction, Opcode, Register, encode_program

__all__ = ["Words"]

_FORMATS = {format.opcode: format for format in FORMATS}


class Words:
    """A program as arrays with an element for each instruction.

    Parameters
    ----------
    program
        Legal instructions. Configuration registers are 0 at its beginning.
    """

    def __init__(self, program: Iterable[Instruction]) -> None:
        halves = encode_program(program).view("<u8")
        self._low, self._high = halves[:, 0], halves[:, 1]
        self._values: dict[Register, NDArray[np.uint64]] = {}

    def __len__(self) -> int:
        return len(self._low)

    @cached_property
    def opcode(self) -> NDArray[np.int64]:
        """The first byte of each word."""
        return (self._low & np.uint64(0xFF)).astype(np.int64)

    def field(self, opcode: Opcode, name: str) -> NDArray[np.int64]:
        """A field of ``opcode``'s format; for other instructions the bits at its place."""
        return _extract(self._low, self._high, _FORMATS[opcode].field(name))

    def is_(self, *opcodes: Opcode) -> NDArray[np.bool_]:
        """A mask of the instructions with one of these opcodes."""
        is_one = np.zeros(1 << 8, np.bool_)
        is_one[list(opcodes)] = True
        return is_one[self.opcode]

    def sets(self, register: Register) -> NDArray[np.bool_]:
        """A mask of the instructions that write a register."""
        number = self.field(Opcode.SET_CONFIGURATION, "register")
        return self.is_(Opcode.SET_CONFIGURATION) & (number == register)

    def register(self, register: Register, name: str) -> NDArray[np.int64]:
        """A field of a register at each instruction; an instruction that writes the register sees its own value."""
        value = self.values(register)
        return _extract(value, np.zeros_like(value), REGISTERS[register].field(name))

    def values(self, register: Register) -> NDArray[np.uint64]:
        """The same for all of a register's bits."""
        if register not in self._values:
            last = np.maximum.accumulate(np.where(self.sets(register), np.arange(len(self)), -1))
            self._values[register] = np.where(last >= 0, self._high[last], np.uint64(0))
        return self._values[register]

    def register_of(self, number: int, register: Register) -> dict[str, int]:
        """The fields of a register at instruction ``number``."""
        return REGISTERS[register].unpack(int(self.values(register)[number]))


def _extract(low: NDArray[np.uint64], high: NDArray[np.uint64], field: Field) -> NDArray[np.int64]:
    """A field of 128-bit numbers."""
    if field.offset >= 64:
        value = high >> np.uint64(field.offset - 64)
    else:
        value = low >> np.uint64(field.offset)
        if field.offset + field.width > 64:
            value = value | (high << np.uint64(64 - field.offset))
    if field.width < 64:
        value = value & np.uint64((1 << field.width) - 1)
    result = value.astype(np.int64)
    if field.signed:
        result -= (result >> (field.width - 1)) << field.width
    return result
