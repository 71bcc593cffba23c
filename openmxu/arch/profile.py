"""Profiles: which part of the instruction set a core executes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

from openmxu.arch.events import Counter
from openmxu.arch.faults import CORE_FAULTS, FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, Format, Opcode, Register, RegisterFormat

__all__ = ["PROFILES", "Profile", "profile_named"]


@dataclass(frozen=True)
class Profile:
    """The features of a core. Opcodes, fields and registers missing from a profile are decoded as an unknown opcode,
    reserved bits and an unknown register.

    Attributes
    ----------
    name
        In lower case.
    formats, registers
        Its instructions and its configuration registers, each with the fields that it has.
    counters
        The counters that the core has.
    counter_width
        Bits of a counter; it wraps to 0 after the largest number.
    faults
        The faults that the core finds in instructions.
    is_sequential
        An instruction begins when the one before it has finished. Only tiles of weights are fetched ahead, as soon as
        there is room for them.
    has_scrubber
        The core clears its memories by itself on command; without a scrubber a program does it.
    """

    name: str
    formats: tuple[Format, ...]
    registers: tuple[RegisterFormat, ...]
    counters: tuple[Counter, ...]
    counter_width: int
    faults: tuple[FaultCode, ...]
    is_sequential: bool
    has_scrubber: bool

    def format(self, opcode: int) -> Format | None:
        """The instruction with this opcode, ``None`` when there is none."""
        return self._by_opcode.get(opcode)

    @cached_property
    def _by_opcode(self) -> dict[int, Format]:
        return {int(format.opcode): format for format in self.formats}

    def has(self, opcode: Opcode, field: str | None = None) -> bool:
        """Whether the profile has an instruction with this opcode and, if given, this field."""
        format = self.format(opcode)
        return format is not None and (field is None or any(item.name == field for item in format.fields))

    def register(self, number: int) -> RegisterFormat | None:
        """The configuration register with this number, ``None`` when there is none."""
        return next((register for register in self.registers if register.number == number), None)


_LITE_FORMATS: dict[Opcode, tuple[str, ...] | None] = {
    **dict.fromkeys(
        (Opcode.NOP, Opcode.HALT, Opcode.SYNCHRONIZE, Opcode.HOST_SYNCHRONIZE, Opcode.INTERRUPT_HOST, Opcode.DEBUG_TAG)
    ),
    Opcode.SET_CONFIGURATION: None,
    Opcode.READ_HOST_MEMORY: None,
    Opcode.WRITE_HOST_MEMORY: None,
    Opcode.READ_WEIGHTS: None,
    Opcode.MATRIX_MULTIPLY: ("accumulate", "next_tile", "unified_buffer", "accumulator", "rows"),
    Opcode.ACTIVATE: ("unified_buffer", "source", "rows", "parameters"),
}
"""The fields of each instruction of the lite profile, ``None`` for all of them."""

_LITE_REGISTERS: dict[Register, tuple[str, ...] | None] = {
    Register.INPUT_FORMAT: None,
    Register.WEIGHT_FORMAT: ("zero_point", "signed"),
    Register.OUTPUT_FORMAT: None,
    Register.LOAD_PARAMETERS: None,
}


_Item = TypeVar("_Item", Format, RegisterFormat)


def _with_fields(item: _Item, names: tuple[str, ...] | None) -> _Item:
    return item if names is None else replace(item, fields=tuple(item.field(name) for name in names))


_FULL = Profile("full", FORMATS, REGISTERS, tuple(Counter), 64, CORE_FAULTS, is_sequential=False, has_scrubber=True)
_STANDARD = replace(_FULL, name="standard", formats=tuple(f for f in FORMATS if f.opcode is not Opcode.LOAD_WEIGHTS))
_LITE = Profile(
    "lite",
    tuple(_with_fields(f, _LITE_FORMATS[f.opcode]) for f in FORMATS if f.opcode in _LITE_FORMATS),
    tuple(_with_fields(r, _LITE_REGISTERS[r.number]) for r in REGISTERS if r.number in _LITE_REGISTERS),
    (Counter.CYCLES,),
    32,
    tuple(code for code in CORE_FAULTS if code not in (FaultCode.UNIMPLEMENTED, FaultCode.UNIFIED_BUFFER_OVERLAP)),
    is_sequential=True,
    has_scrubber=False,
)

PROFILES: tuple[Profile, ...] = (_STANDARD, _LITE, _FULL)
"""Every profile, in the order of their numbers. ``full`` is the whole instruction set; ``standard`` lacks Load_Weights,
which products of two activations need, and weights that come through the host port; ``lite`` has what products of 8-bit
matrices with results scaled to 8 bits need, for parts with few logic cells."""


@cache
def profile_named(name: str) -> Profile:
    """The profile with this name.

    Raises
    ------
    ValueError
        There is no such profile; the message lists the known ones.
    """
    for profile in PROFILES:
        if profile.name == name:
            return profile
    raise ValueError(f"unknown profile {name!r}; known: {', '.join(profile.name for profile in PROFILES)}")
