"""Profiles: instructions and fields that the lite profile lacks are illegal there, like undefined ones."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, Instruction, Opcode, Register, RegisterFormat, format_named
from openmxu.arch.legality import LegalityChecker, Window
from openmxu.arch.profile import PROFILES, Profile, profile_named
from openmxu.arch.registers import CONFIGURATION, configuration_of, configuration_value
from openmxu.arch.scrub import scrub_program
from openmxu.assembler import AssemblyError, assemble
from openmxu.device import DeviceFault
from openmxu.sim.interpreter import Interpreter
from tests.arch.programs import fields, make

LITE = Config(profile="lite", weight_queue_depth=1)
MISSING_OPCODES = {"Load_Weights", "Read_Host_Memory_Alternate", "Write_Host_Memory_Alternate", "Convolve"}
MISSING_FIELDS = {
    "MatrixMultiply": {"wide_input", "wide_weights"},
    "Activate": {"from_unified_buffer", "table", "output", "pooling", "operand", "table_number"},
}


def fault(instruction: Instruction, config: Config = LITE) -> FaultCode:
    """The fault of an instruction with a tile in the array and, except for Read_Weights, two queued ones."""
    checker = LegalityChecker(config)
    checker.tile_in_array = True
    if instruction.format.opcode != Opcode.READ_WEIGHTS:
        checker.outstanding.append(2)
    return checker.check(instruction)


def legal_instructions(profile: Profile) -> list[Instruction]:
    """One instruction of each format; all fields are 0, except those that must not be."""
    return [
        make(f.name, **{item.name: 1 for item in f.fields if item.name in ("rows", "tiles", "height", "width")})
        for f in profile.formats
        if f.opcode != Opcode.CONVOLVE
    ]


def test_full_profile_has_everything() -> None:
    full = profile_named("full")
    assert full.formats == FORMATS
    assert full.registers == REGISTERS
    assert full in PROFILES


def test_standard_profile_lacks_one_instruction() -> None:
    standard = Config().features
    assert standard is PROFILES[0]
    assert [f.name for f in FORMATS if f not in standard.formats] == ["Load_Weights"]
    assert standard.registers == REGISTERS
    assert fault(make("load_weights"), Config()) is FaultCode.UNKNOWN_OPCODE


def test_lite_profile_lacks_these_instructions_and_fields() -> None:
    lite = profile_named("lite")
    assert {f.name for f in FORMATS} - {f.name for f in lite.formats} == MISSING_OPCODES
    for format in lite.formats:
        names = {item.name for item in format_named(format.name).fields}
        assert names - {item.name for item in format.fields} == MISSING_FIELDS.get(format.name, set())
    assert [register.name for register in lite.registers] == [
        *("INPUT_FORMAT", "WEIGHT_FORMAT", "OUTPUT_FORMAT", "LOAD_PARAMETERS"),
    ]


@pytest.mark.parametrize("instruction", legal_instructions(profile_named("lite")), ids=lambda item: item.format.name)
def test_instructions_of_a_lite_core_are_legal(instruction: Instruction) -> None:
    assert fault(instruction) is FaultCode.NONE


@pytest.mark.parametrize("name", sorted(MISSING_OPCODES))
def test_missing_opcode_is_unknown(name: str) -> None:
    assert fault(make(name)) is FaultCode.UNKNOWN_OPCODE


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name in MISSING_FIELDS for field in sorted(MISSING_FIELDS[name])]
)
def test_missing_field_is_reserved(name: str, field: str) -> None:
    assert fault(make(name, rows=1, **{field: 1})) is FaultCode.RESERVED_BITS


@pytest.mark.parametrize("register", REGISTERS, ids=lambda register: register.name)
def test_missing_register_is_unknown(register: RegisterFormat) -> None:
    instruction = make("set_configuration", register=register.number, value=1 << 40 if register.is_action else 0)
    has = LITE.features.register(register.number) is not None
    assert fault(instruction) is (FaultCode.NONE if has else FaultCode.ILLEGAL_VALUE)


def test_missing_register_field_is_illegal() -> None:
    wide = fields(Register.WEIGHT_FORMAT, wide=1)
    assert fault(wide, Config()) is FaultCode.NONE
    assert fault(wide) is FaultCode.ILLEGAL_VALUE


def test_assembler_and_interpreter_report_the_same_faults() -> None:
    memory = np.zeros(64, np.uint8)
    for text, code in (
        ("convolve height=1, width=1", FaultCode.UNKNOWN_OPCODE),
        ("activate rows=1, output=WORD", FaultCode.RESERVED_BITS),
        ("set_configuration register=HOST_STRIDE, stride=8", FaultCode.ILLEGAL_VALUE),
    ):
        with pytest.raises(AssemblyError) as refused:
            assemble(f"{text}\nhalt", LITE)
        assert refused.value.fault is code
        with pytest.raises(DeviceFault) as stopped:
            Interpreter(LITE).execute(assemble(f"{text}\nhalt"), memory, memory)
        assert stopped.value.code is code


@pytest.mark.parametrize("config", [Config(), LITE, Config(profile="full")], ids=lambda config: config.profile)
def test_registers_contain_the_profile(config: Config) -> None:
    values = {name: configuration_value(config, name) for name in CONFIGURATION}
    assert all(type(value) is int for value in values.values())
    assert configuration_of(values) == config


def test_unknown_profile_number() -> None:
    values = {name: configuration_value(LITE, name) for name in CONFIGURATION}
    with pytest.raises(ValueError, match="unknown profile number 7"):
        configuration_of({**values, "profile": 7})


def test_scrub_program_is_legal() -> None:
    checker = LegalityChecker(LITE, Window(0, 0), Window(0, LITE.tile_bytes))
    assert {checker.check(instruction) for instruction in scrub_program(LITE)} == {FaultCode.NONE}
