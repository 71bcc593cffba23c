"""Round trips from words to text and back, and arbitrary text for the assembler."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmxu.arch.isa import FORMATS, REGISTERS, Field, Format, Instruction, format_named
from openmxu.assembler import AssemblyError, assemble
from openmxu.disassembler import disassemble, format_instruction

WORD = st.integers(0, (1 << 128) - 1)
SET_CONFIGURATION = format_named("set_configuration")


@st.composite
def field_values(draw: st.DrawFn, fields: tuple[Field, ...]) -> dict[str, int]:
    """A value for each field, often a limit or a named value."""
    return {
        field.name: draw(
            st.one_of(
                st.integers(field.minimum, field.maximum),
                st.sampled_from([0, field.minimum, field.maximum, *(field.choices or ())]).map(int),
            )
        )
        for field in fields
    }


@st.composite
def encodable(draw: st.DrawFn) -> Instruction:
    """An instruction with random values in its fields."""
    format = draw(st.sampled_from(FORMATS))
    return format(**draw(field_values(format.fields)))


@st.composite
def configuration(draw: st.DrawFn) -> Instruction:
    """A Set_Configuration with random values in the register's fields."""
    register = draw(st.sampled_from(REGISTERS))
    return SET_CONFIGURATION(register=register.number, value=register.pack(**draw(field_values(register.fields))))


@st.composite
def nearly_encodable(draw: st.DrawFn) -> Instruction:
    """An instruction with a few bits inverted."""
    word = draw(st.one_of(encodable(), configuration())).word
    for bit in draw(st.lists(st.integers(0, 127), max_size=3)):
        word ^= 1 << bit
    return Instruction(word)


@st.composite
def spelled_number(draw: st.DrawFn, value: int) -> str:
    """An integer in one of its possible spellings."""
    digits = format(abs(value), draw(st.sampled_from("dxXob")))
    prefix = {"d": "", "x": "0x", "X": "0X", "o": "0o", "b": "0b"}
    base = draw(st.sampled_from([key for key in prefix if format(abs(value), key) == digits]))
    grouped = "_".join(digits[i : i + 3] for i in range(0, len(digits), 3))
    sign = "-" if value < 0 else draw(st.sampled_from(["", "+"]))
    return sign + prefix[base] + draw(st.sampled_from([digits, grouped]))


@st.composite
def spelled_case(draw: st.DrawFn, text: str) -> str:
    return draw(st.sampled_from([text, text.lower(), text.upper(), text.title()]))


@st.composite
def spelled_items(draw: st.DrawFn, fields: tuple[Field, ...], values: dict[str, int]) -> list[str]:
    """The fields of an instruction in random order, each in one of its possible spellings."""
    items = []
    for field in draw(st.permutations(fields)):
        value = values[field.name]
        name = draw(spelled_case(field.name))
        names = [choice.name for choice in field.choices or () if choice == value]
        if value == 0 and draw(st.booleans()):
            continue
        if field.is_flag and value and draw(st.booleans()):
            items.append(name)
        elif names and draw(st.booleans()):
            items.append(f"{name} = {draw(spelled_case(names[0]))}")
        else:
            items.append(f"{name}={draw(spelled_number(value))}")
    return items


@given(st.one_of(encodable(), configuration()))
@settings(max_examples=500)
def test_every_encodable_word_survives_the_round_trip(instruction: Instruction) -> None:
    text = format_instruction(instruction)
    assert ".word" not in text
    assert assemble(text) == [instruction]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("limit", ["minimum", "maximum"])
def test_limits_of_every_field_survive_the_round_trip(format: Format, limit: str) -> None:
    for field in format.fields:
        instruction = format(**{field.name: getattr(field, limit)})
        assert assemble(format_instruction(instruction)) == [instruction]


@given(st.one_of(WORD.map(Instruction), nearly_encodable()))
@settings(max_examples=500)
def test_every_word_survives_the_round_trip(instruction: Instruction) -> None:
    assert assemble(format_instruction(instruction)) == [instruction]


@given(st.lists(st.one_of(encodable(), configuration(), nearly_encodable()), max_size=8))
def test_every_program_survives_the_round_trip(program: list[Instruction]) -> None:
    text = disassemble(program)
    assert text.count("\n") == len(program)
    assert assemble(text) == program
    assert disassemble(assemble(text)) == text


@given(st.data())
def test_every_spelling_means_the_same(data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(FORMATS))
    values = data.draw(field_values(format.fields))
    items = data.draw(spelled_items(format.fields, values))
    blank = data.draw(st.sampled_from(["", " ", "\t "]))
    comment = data.draw(st.sampled_from(["", "# nop", ";", " ; x = 1, # \x00 \u2028"]))
    text = f"{blank}{data.draw(spelled_case(format.mnemonic))} {f'{blank},{blank}'.join(items)}{blank}{comment}"
    assert assemble(text) == [format(**values)]


@given(st.data())
def test_every_spelling_of_a_register_means_the_same(data: st.DataObject) -> None:
    register = data.draw(st.sampled_from(REGISTERS))
    values = data.draw(field_values(register.fields))
    items = data.draw(spelled_items(register.fields, values))
    items.insert(data.draw(st.integers(0, len(items))), f"register={register.name}")
    expected = SET_CONFIGURATION(register=register.number, value=register.pack(**values))
    assert assemble(f"set_configuration {', '.join(items)}") == [expected]


def outcome(text: str) -> list[Instruction] | AssemblyError:
    try:
        return assemble(text, name="x")
    except AssemblyError as error:
        return error


def assert_sound(text: str) -> None:
    """The result is a program, or an error of one line at the position of the quoted text."""
    result = outcome(text)
    if not isinstance(result, AssemblyError):
        assert assemble(disassemble(result)) == result
        return
    assert len(str(result).splitlines()) == 1
    line = re.split(r"\r\n|\r|\n", text)[result.line - 1]
    rest = line[result.column - 1 :]
    quoted = re.match(r"""found (the end of the line|'.*?'|".*?"), expected """, result.problem).group(1)
    if quoted == "the end of the line":
        assert result.column == len(line) + 1 or rest[0] in "#;"
    else:
        token = ast.literal_eval(quoted)
        assert rest.startswith(token.removesuffix("..."))


@given(st.text())
def test_any_text_is_a_program_or_an_error(text: str) -> None:
    assert_sound(text)


TOKENS = [
    *(format.mnemonic for format in FORMATS),
    *(field.name for table in (*FORMATS, *REGISTERS) for field in table.fields),
    *(register.name for register in REGISTERS),
    *"=,#;'\"\\-+.0123é",
    *[
        "=",
        ",",
        " ",
        " ",
        "\n",
        ".word",
        "0x",
        "0b12",
        "1_000",
        "-5",
        "99999999999999999999999",
        "\t",
        "\r\n",
        "\x00",
        "\ud800",
    ],
]


@given(st.lists(st.sampled_from(TOKENS), max_size=25).map("".join))
@settings(max_examples=500)
def test_any_mixture_of_words_is_a_program_or_an_error(text: str) -> None:
    assert_sound(text)


@given(st.one_of(encodable(), configuration()), st.integers(0, 200), st.sampled_from(TOKENS), st.booleans())
@settings(max_examples=500)
def test_any_damaged_line_is_a_program_or_an_error(
    instruction: Instruction, place: int, token: str, replace: bool
) -> None:
    text = format_instruction(instruction)
    assert_sound(text[:place] + token + text[place + replace :])
