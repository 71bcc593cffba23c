"""The instruction tables: layout, limits, encoding, decoding."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmxu.arch.isa import (
    FORMATS,
    REGISTERS,
    UNITS,
    Field,
    Format,
    IllegalWordError,
    Instruction,
    Opcode,
    Operand,
    OutputFormat,
    Pooling,
    Register,
    RegisterFormat,
    decode,
    encode_program,
    format_named,
    register_format,
)

EVERY_FIELD = [
    pytest.param(table, field, id=f"{table.name}.{field.name}")
    for table in (*FORMATS, *REGISTERS)
    for field in table.fields
]


def bits_of(field: Field) -> set[int]:
    return set(range(field.offset, field.offset + field.width))


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_no_bit_of_a_word_belongs_to_two_fields(format: Format) -> None:
    places = [set(range(8)), *map(bits_of, format.fields)]
    assert sum(map(len, places)) == len(set(chain(*places)))
    assert max(chain(*places)) < 128


@pytest.mark.parametrize("register", REGISTERS, ids=lambda register: register.name)
def test_no_bit_of_a_register_belongs_to_two_fields(register: RegisterFormat) -> None:
    places = [bits_of(field) for field in register.fields]
    assert sum(map(len, places)) == len(set(chain(*places)))
    assert max(chain(*places)) < 64


def test_every_opcode_and_every_register_has_one_table() -> None:
    assert sorted(format.opcode for format in FORMATS) == sorted(Opcode)
    assert [register.number for register in REGISTERS] == list(Register)
    assert [register.name for register in REGISTERS] == [number.name for number in Register]
    assert [register_format(number) for number in Register] == list(REGISTERS)
    assert register_format(len(REGISTERS)) is None


def test_names_are_unique() -> None:
    assert len({format.mnemonic for format in FORMATS}) == len(FORMATS)
    for table in (*FORMATS, *REGISTERS):
        assert len({field.name for field in table.fields}) == len(table.fields)


def test_no_register_field_has_the_name_of_a_field_of_set_configuration() -> None:
    own = {field.name for field in format_named("set_configuration").fields}
    assert not own & {field.name for register in REGISTERS for field in register.fields}


def test_the_hardware_executes_every_named_mode() -> None:
    limited = {
        (format.name, field.name): field.implemented
        for format in FORMATS
        for field in format.fields
        if field.implemented is not None
    }
    assert limited == {
        ("Activate", "output"): tuple(OutputFormat),
        ("Activate", "pooling"): tuple(Pooling),
        ("Activate", "operand"): tuple(Operand),
    }
    assert not any(field.implemented for register in REGISTERS for field in register.fields)


def test_matrix_multiply_has_the_operand_widths_of_the_tpu() -> None:
    """The paper, section 2: 3 bytes of unified buffer address, 2 of accumulator address, 4 of length (sometimes two
    dimensions for convolutions); the rest is opcode and flags."""
    multiply = format_named("MatrixMultiply")
    widths = {name: multiply.field(name).width for name in ("unified_buffer", "accumulator", "rows")}
    assert widths == {"unified_buffer": 24, "accumulator": 16, "rows": 32}
    assert min(field.offset for field in multiply.fields) == 8  # below: the opcode
    convolve = format_named("Convolve")
    widths = {name: convolve.field(name).width for name in ("unified_buffer", "accumulator", "height", "width")}
    assert widths == {"unified_buffer": 24, "accumulator": 16, "height": 16, "width": 16}


@pytest.mark.parametrize(("table", "field"), EVERY_FIELD)
def test_field_limits(table: Format | RegisterFormat, field: Field) -> None:
    low, high = (-(2 ** (field.width - 1)), 2 ** (field.width - 1) - 1) if field.signed else (0, 2**field.width - 1)
    for value in (low, high, 0, np.uint8(1)):
        word = field.insert(value)
        assert field.extract(word) == value
        assert field.extract(~word & (1 << 128) - 1) == (-1 - int(value) if field.signed else high - int(value))
        assert table.unpack(table.pack(**{field.name: value}))[field.name] == value
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError) as caught:
            field.insert(value)
        assert str(caught.value) == f"{field.name} must be from {low} to {high}, not {value}"
    with pytest.raises(TypeError) as caught:
        field.insert("3")
    assert str(caught.value) == f"{field.name} must be an int, not '3'"


@pytest.mark.parametrize(("table", "field"), EVERY_FIELD)
def test_named_values_fit_their_field(table: Format | RegisterFormat, field: Field) -> None:
    for value in chain(field.choices or (), field.implemented or ()):
        assert field.extract(field.insert(value)) == value


@given(st.data())
def test_encoding_and_decoding_are_inverse(data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(FORMATS))
    values = {field.name: data.draw(st.integers(field.minimum, field.maximum)) for field in format.fields}
    instruction = format(**values)
    assert decode(instruction.word) == instruction
    assert instruction.format is format
    assert instruction.values == values
    assert all(instruction[name] == value for name, value in values.items())


@given(st.integers(0, (1 << 128) - 1))
def test_decode_accepts_exactly_the_encodable_words(word: int) -> None:
    formats = [format for format in FORMATS if format.opcode == word & 0xFF]
    if formats and formats[0](**formats[0].unpack(word)).word == word:
        assert decode(word).word == word
    else:
        with pytest.raises(IllegalWordError):
            decode(word)


def test_decode_reports_what_is_illegal() -> None:
    with pytest.raises(IllegalWordError) as caught:
        decode(0xFE)
    assert str(caught.value) == "unknown opcode 0xfe"
    with pytest.raises(IllegalWordError) as caught:
        decode(0x0501)
    assert str(caught.value) == "reserved bits 0x500 of Halt are set"


def test_illegal_words_are_instructions_without_values() -> None:
    unknown = Instruction(0xFE)
    assert unknown.format is None
    assert unknown.values == {}
    assert not unknown.has_reserved_bits
    with pytest.raises(IllegalWordError, match="unknown opcode 0xfe"):
        unknown["rows"]


@pytest.mark.parametrize("word", [-1, 1 << 128])
def test_words_have_128_bits(word: int) -> None:
    with pytest.raises(ValueError) as caught:
        Instruction(word)
    assert str(caught.value) == f"an instruction word must be from 0 to 2**128 - 1, not {word}"


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown instruction 'mul'; known: nop, halt, .*, activate"):
        format_named("mul")
    with pytest.raises(ValueError) as caught:
        format_named("READ_WEIGHTS")(rows=1)
    assert str(caught.value) == "Read_Weights has no field 'rows'; its fields: tiles, weights"
    with pytest.raises(ValueError, match="Halt has no field 'rows'; its fields: none"):
        format_named("halt")(rows=1)


def test_bytes_are_little_endian() -> None:
    instruction = format_named("matrixmultiply")(unified_buffer=0x010203, accumulator=0x0405, rows=0x06070809)
    assert instruction.to_bytes() == bytes([0x30, 0, 3, 2, 1, 5, 4, 9, 8, 7, 6, 0, 0, 0, 0, 0])
    program = encode_program([instruction, format_named("halt")()])
    assert program.shape == (2, 16)
    assert program.dtype == np.uint8
    assert program.tobytes() == instruction.to_bytes() + b"\x01" + bytes(15)


def test_an_empty_program_has_no_words() -> None:
    assert encode_program([]).shape == (0, 16)


def test_units_are_the_bits_of_synchronize() -> None:
    assert [int(unit) for unit in UNITS] == list(range(5))
    assert format_named("synchronize").field("units").width >= len(UNITS)
