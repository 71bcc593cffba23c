"""The assembly language: meaning of lines, canonical text, and errors with their positions."""

from __future__ import annotations

import re

import pytest

from openmxu.arch.config import Config
from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import FORMATS, Instruction, Opcode, OutputFormat, Pooling, Register, format_named
from openmxu.assembler import AssemblyError, assemble
from openmxu.disassembler import disassemble, format_instruction


def make(name: str, **values: int) -> Instruction:
    return format_named(name)(**values)


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("halt", make("halt")),
        ("matrixmultiply rows=8, next_tile", make("matrixmultiply", rows=8, next_tile=1)),
        ("MatrixMultiply ROWS=0x8, Next_Tile=1", make("matrixmultiply", rows=8, next_tile=1)),
        ("activate rows=1, output=INT32", make("activate", rows=1, output=OutputFormat.INT32)),
        ("activate rows=1, output=3, pooling=max", make("activate", rows=1, output=3, pooling=Pooling.MAX)),
        ("convolve dy=-1, dx=-0x8000", make("convolve", dy=-1, dx=-32768)),
        (
            "set_configuration register=INPUT_FORMAT, zero_point=-3, signed",
            make("set_configuration", register=Register.INPUT_FORMAT, value=0x1FFFD),
        ),
        ("set_configuration register=3, stride=1_024", make("set_configuration", register=3, value=1024)),
        (
            "set_configuration value=0x8000_0000_0000_0000, register=INPUT_FORMAT",
            make("set_configuration", register=Register.INPUT_FORMAT, value=1 << 63),
        ),
        ("set_configuration register=0xffff, value=7", make("set_configuration", register=0xFFFF, value=7)),
        ("set_configuration", make("set_configuration")),
        (".word 0xfe", Instruction(0xFE)),
        (".WORD 0b1_0000_0001", Instruction(0x101)),
    ],
)
def test_examples(text: str, instruction: Instruction) -> None:
    assert assemble(text) == [instruction]


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (make("nop"), "nop"),
        (make("synchronize", units=5), "synchronize units=5"),
        (make("read_weights", tiles=2, weights=4096), "read_weights tiles=2, weights=0x1000"),
        (
            make("matrixmultiply", rows=8, next_tile=1),
            "matrixmultiply next_tile, unified_buffer=0, accumulator=0, rows=8",
        ),
        (
            make("activate", rows=8, output=15, operand=1),
            "activate unified_buffer=0, source=0, rows=8, parameters=0, output=15, operand=ADD",
        ),
        (
            make("set_configuration", register=0, value=0x1FFFD),
            "set_configuration register=INPUT_FORMAT, zero_point=-3, signed",
        ),
        (
            make("convolve", next_tile=1, wide_weights=1, height=3, width=4, dy=-1, dx=2),
            "convolve next_tile, wide_weights, unified_buffer=0, accumulator=0, height=3, width=4, dy=-1, dx=2",
        ),
        (
            make("activate", from_unified_buffer=1, table=1, source=9, rows=2, pooling=Pooling.AVERAGE),
            "activate from_unified_buffer, table, unified_buffer=0, source=9, rows=2, parameters=0, output=BYTE, "
            "pooling=AVERAGE",
        ),
        (
            make("set_configuration", register=Register.WEIGHT_FORMAT, value=1 << 17),
            "set_configuration register=WEIGHT_FORMAT, zero_point=0, wide",
        ),
        (
            make("set_configuration", register=0, value=1 << 17),
            "set_configuration register=INPUT_FORMAT, value=0x20000",
        ),
        (make("set_configuration", register=77, value=1), "set_configuration register=77, value=0x1"),
        (Instruction(0xFE), ".word 0x000000000000000000000000000000fe"),
        (Instruction(0x101), ".word 0x00000000000000000000000000000101"),
    ],
)
def test_canonical_text(instruction: Instruction, text: str) -> None:
    assert format_instruction(instruction) == text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_empty_lines(end: str) -> None:
    text = end.join(["", "# begin", "  nop", "\t", "halt ; end"])
    assert assemble(text) == [make("nop"), make("halt")]
    with pytest.raises(AssemblyError, match=r"^<string>:4:1: "):
        assemble(end.join(["nop", "", "", "what"]))


def test_nothing_is_the_empty_program() -> None:
    assert assemble("") == []
    assert disassemble([]) == ""


ERRORS = [
    (
        "matrixmul rows=3",
        1,
        1,
        "found 'matrixmul', expected an instruction: nop, halt, ",
        "; did you mean 'matrixmultiply'?",
    ),
    ("nop\n  xyzzy", 2, 3, "found 'xyzzy', expected an instruction: nop, halt, ", ", .word"),
    ("rows=3", 1, 1, "found 'rows', expected an instruction: ", ""),
    ("=", 1, 1, "found '=', expected an instruction: ", ""),
    ("12", 1, 1, "found '12', expected an instruction: ", ""),
    ("nop 3", 1, 5, "found '3', expected the end of the line: Nop has no fields", ""),
    ("nop nop", 1, 5, "found 'nop', expected the end of the line: Nop has no fields", ""),
    (
        "activate row=3",
        1,
        10,
        "found 'row', expected a field of Activate: from_unified_buffer, table, unified_buffer, source, rows, "
        "parameters, output, pooling, operand, table_number; did you mean 'rows'?",
        "",
    ),
    ("activate rows 3", 1, 15, "found '3', expected '=', ',' or the end of the line", ""),
    ("activate rows=3 table", 1, 17, "found 'table', expected ',' or the end of the line", ""),
    ("activate rows=3,", 1, 17, "found the end of the line, expected the name of a field", ""),
    ("activate rows=3, # more", 1, 18, "found the end of the line, expected the name of a field", ""),
    ("activate ,rows=3", 1, 10, "found ',', expected the name of a field", ""),
    ("activate rows=3, rows=4", 1, 18, "found 'rows', expected every field once, and it is there already", ""),
    ("activate rows", 1, 10, "found 'rows', expected 'rows=' and an integer from 0 to 16777215", ""),
    ("activate rows=", 1, 15, "found the end of the line, expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows==3", 1, 15, "found '=', expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows=-1", 1, 15, "found '-1', expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows=0x100_0000", 1, 15, "found '0x100_0000', expected an integer from 0 to 16777215", ""),
    ("activate rows=010", 1, 15, "found '010', expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows=1__0", 1, 15, "found '1__0', expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows=0b2", 1, 15, "found '0b2', expected an integer from 0 to 16777215 for rows", ""),
    ("activate rows=1.5", 1, 16, "found '.', expected ',' or the end of the line", ""),
    ("activate rows=- 1", 1, 15, "found '-', expected an integer from 0 to 16777215 for rows", ""),
    ("activate table=2", 1, 16, "found '2', expected an integer from 0 to 1 for table", ""),
    ("convolve dy=32768", 1, 13, "found '32768', expected an integer from -32768 to 32767 for dy", ""),
    (
        "activate output=IN32",
        1,
        17,
        "found 'IN32', expected BYTE, WORD, INT32 or an integer from 0 to 15 for output; did you mean 'INT32'?",
        "",
    ),
    ("activate output=16", 1, 17, "found '16', expected BYTE, WORD, INT32 or an integer from 0 to 15 for output", ""),
    (
        "activate output",
        1,
        10,
        "found 'output', expected 'output=' and BYTE, WORD, INT32 or an integer from 0 to 15",
        "",
    ),
    (
        "set_configuration zero_point=3",
        1,
        19,
        "found 'zero_point', expected a field of Set_Configuration that names no known register: register, value",
        "",
    ),
    ("set_configuration register=99, signed", 1, 32, "found 'signed', expected a field of Set_Configuration that ", ""),
    (
        "set_configuration register=INPUT_FORMAT, signd",
        1,
        42,
        "found 'signd', expected a field of Set_Configuration INPUT_FORMAT: register, value, zero_point, signed; "
        "did you mean 'signed'?",
        "",
    ),
    (
        "set_configuration register=INPUT_FORMAT, value=1, signed",
        1,
        42,
        "found 'value', expected either value or the fields of INPUT_FORMAT",
        "",
    ),
    (
        "set_configuration register=INPUTFORMAT",
        1,
        28,
        "found 'INPUTFORMAT', expected ",
        "; did you mean 'INPUT_FORMAT'?",
    ),
    ("set_configuration register=1, register=2", 1, 31, "found 'register', expected every field once", ""),
    (".word", 1, 6, "found the end of the line, expected a word from 0 to 2**128 - 1", ""),
    (".word -1", 1, 7, "found '-1', expected a word from 0 to 2**128 - 1", ""),
    (".word 0x1_00000000_00000000_00000000_00000000", 1, 7, "found '0x1_00000000_00000000_00000000_00000000', ", ""),
    (".word 1 2", 1, 9, "found '2', expected the end of the line", ""),
    ("\x0bnop", 1, 1, "found '\\x0b', expected an instruction: ", ""),
    ("activate rows=\u0663", 1, 15, "found '\u0663', expected an integer from 0 to 16777215 for rows", ""),
]


@pytest.mark.parametrize(("text", "line", "column", "beginning", "end"), ERRORS, ids=[repr(row[0]) for row in ERRORS])
def test_errors_have_position_and_reason(text: str, line: int, column: int, beginning: str, end: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text, name="demo.asm")
    error = caught.value
    assert (error.name, error.line, error.column, error.fault) == ("demo.asm", line, column, FaultCode.NONE)
    assert error.problem.startswith(beginning)
    assert error.problem.endswith(end)
    assert str(error) == f"demo.asm:{line}:{column}: {error.problem}"


@pytest.mark.parametrize(
    "text", ["activate rows=" + "9" * 5000, "x" * 100_000, ".word " + "z" * 5000, "activate " + "f" * 5000]
)
def test_long_text_is_cut_in_errors(text: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert re.match(r"found '.{40}\.\.\.', expected ", caught.value.problem)
    assert len(str(caught.value)) < 400


def test_a_configuration_adds_the_rules_of_the_machine() -> None:
    text = "\n# too many rows\nread_weights tiles=1\n  matrixmultiply next_tile, rows=129 ; accumulators\nhalt\n"
    assert len(assemble(text)) == 3
    with pytest.raises(AssemblyError) as caught:
        assemble(text, Config.preset("tiny"), name="demo.asm")
    error = caught.value
    assert (error.line, error.column, error.fault) == (4, 3, FaultCode.ACCUMULATOR_RANGE)
    assert str(error) == f"demo.asm:4:3: ACCUMULATOR_RANGE: {FAULT_DESCRIPTIONS[FaultCode.ACCUMULATOR_RANGE]}"
    assert len(assemble(text, Config())) == 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (".word 0xfe", FaultCode.UNKNOWN_OPCODE),
        (".word 0x101", FaultCode.RESERVED_BITS),
        ("activate rows=1, output=15", FaultCode.UNIMPLEMENTED),
        ("convolve", FaultCode.ILLEGAL_VALUE),
        ("activate rows=1, from_unified_buffer", FaultCode.UNIFIED_BUFFER_OVERLAP),
        ("activate", FaultCode.ILLEGAL_VALUE),
        ("matrixmultiply next_tile, rows=1", FaultCode.NO_TILE),
        ("read_weights tiles=1\n" * 5, FaultCode.WEIGHT_QUEUE_FULL),
        ("set_configuration register=INPUT_FORMAT, zero_point=-3", FaultCode.ILLEGAL_VALUE),
    ],
)
def test_faults_of_the_machine(text: str, fault: FaultCode) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text, Config())
    assert caught.value.fault is fault
    assert caught.value.line == max(1, text.count("\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("synchronize units=32", "units has bits above bit 4"),
        ("read_host_memory", "rows must be at least 1, not 0"),
        ("read_host_memory rows=1, host=4", "host must be a multiple of 8 bytes, not 0x4"),
        ("read_weights tiles=1, weights=12", "weights must be a multiple of 8 bytes, not 0xc"),
        ("matrixmultiply rows=1, wide_weights", "wide_weights needs next_tile"),
        ("convolve height=1, width=1", "height of CONVOLUTION_PLANE must be at least 1, not 0"),
        ("activate rows=1, pooling=MAX", "height of POOLING_WINDOW must be at least 1, not 0"),
        ("activate rows=1, table, output=WORD", "table needs output=BYTE"),
        ("activate rows=1, operand=ADD, output=INT32", "operand=ADD and output=INT32 exclude each other"),
        ("set_configuration register=99", "there is no register 99"),
        (
            "set_configuration register=INPUT_FORMAT, value=0x8_0000",
            "value has bits that belong to no field of INPUT_FORMAT",
        ),
        (
            "set_configuration register=INPUT_FORMAT, zero_point=-3",
            "zero_point must be from 0 to 255, the values of uint8, not -3",
        ),
        (
            "set_configuration register=SOURCE_FORMAT, zero_point=-32769, signed, wide",
            "zero_point must be from -32768 to 32767, the values of int16, not -32769",
        ),
        (
            "set_configuration register=WEIGHT_FORMAT, wide, signed",
            "wide weights have no zero_point and are always signed: leave out both fields",
        ),
        ("set_configuration register=HOST_STRIDE, stride=12", "stride must be a multiple of 8 bytes, not 0xc"),
        ("set_configuration register=LOAD_PARAMETERS", "count must be at least 1, not 0"),
        ("set_configuration register=WEIGHT_FORMAT, wide\nload_weights", "WEIGHT_FORMAT is wide"),
    ],
)
def test_illegal_values_name_the_field(text: str, reason: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text, Config(profile="full"))
    assert str(caught.value) == f"<string>:{1 + text.count(chr(10))}:1: ILLEGAL_VALUE: {reason}"


def test_memory_windows_are_unknown_to_the_assembler() -> None:
    text = "read_host_memory rows=1, host=0xffff_ffff_ffff_fff8\nread_weights tiles=1, weights=0xffff_ffff_0000_0000"
    assert len(assemble(text, Config())) == 2


def test_every_opcode_is_written_by_its_mnemonic() -> None:
    assert {assemble(format.mnemonic)[0].format.opcode for format in FORMATS} == set(Opcode)
