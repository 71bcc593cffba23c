"""Instructions to assembly text, and back to the same words by :mod:`openmxu.assembler`."""

from __future__ import annotations

from collections.abc import Iterable

from openmxu.arch.isa import WORD_BYTES, Field, Instruction, Opcode, RegisterFormat, register_format
from openmxu.assembler import WORD_DIRECTIVE

__all__ = ["disassemble", "format_instruction"]

_HEXADECIMAL_WIDTH = 64
"""Fields of this width are byte addresses or bit patterns, which are written in hexadecimal."""


def disassemble(instructions: Iterable[Instruction]) -> str:
    """The program as text, one line for each instruction; it assembles to the same words."""
    return "".join(f"{format_instruction(instruction)}\n" for instruction in instructions)


def format_instruction(instruction: Instruction) -> str:
    """The line, without its end, that assembles to this instruction.

    Flags that are 0 and choices that are ``NONE`` are left out. A word that no instruction encodes becomes a raw
    word, a register value that the register's fields do not cover a number.
    """
    format = instruction.format
    if format is None or instruction.has_reserved_bits:
        return f"{WORD_DIRECTIVE} 0x{instruction.word:0{2 * WORD_BYTES}x}"
    items = []
    for field in format.fields:
        value = instruction[field.name]
        register = _covering_register(instruction) if field.name == "value" else None
        if register is None:
            items += _format_field(field, value)
        else:
            for register_field in register.fields:
                items += _format_field(register_field, register_field.extract(value))
    return f"{format.mnemonic} {', '.join(items)}".rstrip()


def _covering_register(instruction: Instruction) -> RegisterFormat | None:
    """The register that a Set_Configuration writes, if its fields hold every bit of the value."""
    if instruction.opcode is not Opcode.SET_CONFIGURATION:
        return None
    register = register_format(instruction["register"])
    if register is None or instruction["value"] & ~register.used_mask:
        return None
    return register


def _format_field(field: Field, value: int) -> list[str]:
    """``[text]``, or an empty list if the field has its default and can be left out."""
    if field.is_flag:
        return [field.name] if value else []
    if field.is_optional and value == 0:
        return []
    if field.choices is not None and value in set(field.choices):
        choice = field.choices(value).name
        return [] if choice == "NONE" and value == 0 else [f"{field.name}={choice}"]
    return [f"{field.name}={value:#x}" if field.width == _HEXADECIMAL_WIDTH else f"{field.name}={value}"]
