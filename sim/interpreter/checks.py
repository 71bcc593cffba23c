"""Checks of programs and memories that all simulated devices share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Instruction, Opcode

__all__ = ["check_memory", "check_program"]


def check_program(program: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """The instructions of ``program``, which must end with Halt.

    Raises
    ------
    ValueError
        The last instruction is not Halt, or there is none.
    """
    instructions = tuple(program)
    if not instructions:
        raise ValueError("a program must end with Halt; this one is empty")
    last = instructions[-1]
    if last.word & 0xFF != Opcode.HALT:
        name = f"opcode {last.word & 0xFF:#04x}" if last.format is None else last.format.name
        raise ValueError(f"a program must end with Halt; instruction {len(instructions) - 1}, the last one, is {name}")
    return instructions


def check_memory(name: str, memory: NDArray[np.uint8], *, writeable: bool = False) -> None:
    """Check that ``memory`` can serve as host or weight memory.

    Raises
    ------
    ValueError
        It is not a C-contiguous uint8 vector, or not writeable although ``writeable`` is set; the message says what it
        is.
    """
    if not isinstance(memory, np.ndarray):
        raise ValueError(f"{name} must be a uint8 array, not {type(memory).__name__}")
    if memory.dtype != np.uint8 or memory.ndim != 1 or not memory.flags.c_contiguous:
        layout = "" if memory.flags.c_contiguous else ", not contiguous"
        raise ValueError(
            f"{name} must be a contiguous uint8 vector, not {memory.dtype} of shape {memory.shape}{layout}; "
            "np.ascontiguousarray(x, np.uint8).reshape(-1) makes one"
        )
    if writeable and not memory.flags.writeable:
        raise ValueError(f"{name} must be writeable; pass a copy of this one")
