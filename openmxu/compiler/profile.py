"""Whether a program has only what its configuration's profile has."""

from __future__ import annotations

from collections.abc import Iterable

from openmxu.arch.isa import FORMATS, REGISTERS, Instruction, Opcode
from openmxu.arch.profile import PROFILES, Profile
from openmxu.compiler.errors import ProfileError
from openmxu.program import Program

__all__ = ["check_profile"]


def check_profile(program: Program) -> None:
    """Refuse a program of which the core has no instruction, field or register.

    Raises
    ------
    ProfileError
        It names the first layer that needs one, and what it needs.
    """
    features = program.config.features
    if (features.formats, features.registers) == (FORMATS, REGISTERS):
        return
    for instruction, number in zip(program.instructions, program.layer_numbers, strict=True):
        missing = _missing(instruction, features)
        if missing:
            where = f"layer {program.layers[number].name!r}" if number >= 0 else "the program"
            raise ProfileError(
                f"{where} needs {missing}, which a core of the {features.name} profile does not have; "
                f"the {_profile_for(instruction)} profile has it"
            )


def _profile_for(instruction: Instruction) -> str:
    """The first profile that has all that the instruction needs."""
    return next(profile.name for profile in PROFILES if not _missing(instruction, profile))


def _missing(instruction: Instruction, features: Profile) -> str:
    """What the instruction needs and the profile lacks; empty if nothing."""
    format, values = instruction.format, instruction.values
    assert format is not None, "a compiled program consists of instructions"
    if not features.has(format.opcode):
        return format.name
    fields = [name for name, value in values.items() if value and not features.has(format.opcode, name)]
    if fields:
        return f"{format.name} with {_listed(fields)}"
    if format.opcode is not Opcode.SET_CONFIGURATION:
        return ""
    register, known = REGISTERS[values["register"]], features.register(values["register"])
    if known is None:
        return register.name
    fields = [field.name for field in register.fields if field not in known.fields and field.extract(values["value"])]
    return f"{register.name} with {_listed(fields)}" if fields else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
