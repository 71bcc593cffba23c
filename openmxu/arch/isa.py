"""The instruction set as data: every instruction, its fields, and the 16-byte words that encode it.

RTL, interpreter, assembler, compiler and ``docs/isa.md`` all read the tables of this module. A word is a little-endian
128-bit number; bit 0 is the lowest bit of byte 0, which is the opcode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError

__all__ = [
    "FORMATS",
    "REGISTERS",
    "UNITS",
    "WORD_BITS",
    "WORD_BYTES",
    "Field",
    "Format",
    "IllegalWordError",
    "Instruction",
    "Opcode",
    "Operand",
    "OutputFormat",
    "Pooling",
    "Register",
    "RegisterFormat",
    "Unit",
    "decode",
    "encode_program",
    "format_named",
    "register_format",
]

WORD_BITS = 128
WORD_BYTES = WORD_BITS // 8


class Opcode(IntEnum):
    """The first byte of a word."""

    NOP = 0x00
    HALT = 0x01
    SYNCHRONIZE = 0x02
    HOST_SYNCHRONIZE = 0x03
    INTERRUPT_HOST = 0x04
    DEBUG_TAG = 0x05
    SET_CONFIGURATION = 0x08
    READ_HOST_MEMORY = 0x10
    READ_HOST_MEMORY_ALTERNATE = 0x11
    WRITE_HOST_MEMORY = 0x12
    WRITE_HOST_MEMORY_ALTERNATE = 0x13
    LOAD_WEIGHTS = 0x14
    READ_WEIGHTS = 0x20
    MATRIX_MULTIPLY = 0x30
    CONVOLVE = 0x31
    ACTIVATE = 0x40


class Unit(IntEnum):
    """The units that execute instructions; bit numbers of Synchronize's ``units``."""

    HOST_READ = 0
    HOST_WRITE = 1
    WEIGHT = 2
    MATRIX = 3
    ACTIVATION = 4


UNITS: tuple[Unit, ...] = tuple(Unit)


class OutputFormat(IntEnum):
    """What Activate writes for each accumulator."""

    BYTE = 0
    WORD = 1
    INT32 = 2


class Register(IntEnum):
    """Numbers of the configuration registers."""

    INPUT_FORMAT = 0
    WEIGHT_FORMAT = 1
    OUTPUT_FORMAT = 2
    HOST_STRIDE = 3
    LOAD_PARAMETERS = 4
    LOAD_TABLE = 5
    CONVOLUTION_PLANE = 6
    POOLING_WINDOW = 7
    POOLING_PLANE = 8
    OPERAND_ADDRESS = 9
    OPERAND_SCALE = 10
    SOURCE_FORMAT = 11
    OPERAND_FORMAT = 12


class IllegalWordError(OpenmxuError, ValueError):
    """A word that encodes no instruction: its opcode is unknown or a reserved bit is set."""


@dataclass(frozen=True)
class Field:
    """A bit field of a word or of a register value.

    ``implemented`` lists the values that the hardware executes, ``None`` for all; ``choices`` names values. Assembly
    leaves a field of value 0 out if it ``is_optional``.
    """

    name: str
    offset: int
    width: int
    description: str
    signed: bool = False
    choices: type[IntEnum] | None = None
    implemented: tuple[int, ...] | None = None
    is_optional: bool = False

    @cached_property
    def mask(self) -> int:
        """The bits of the word that belong to the field."""
        return ((1 << self.width) - 1) << self.offset

    @cached_property
    def minimum(self) -> int:
        """The smallest value that the field holds."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @cached_property
    def maximum(self) -> int:
        """The largest value that the field holds."""
        return (1 << (self.width - self.signed)) - 1

    @property
    def is_flag(self) -> bool:
        """Whether the field is one bit, written in assembly as a bare word."""
        return self.width == 1

    def insert(self, value: int) -> int:
        """``value`` at the field's place in a word.

        Raises
        ------
        TypeError, ValueError
            The value is not an integer, or does not fit; the message gives the range.
        """
        if not isinstance(value, (int, np.integer)):
            raise TypeError(f"{self.name} must be an int, not {value!r}")
        if not self.minimum <= value <= self.maximum:
            raise ValueError(f"{self.name} must be from {self.minimum} to {self.maximum}, not {int(value)}")
        return (int(value) << self.offset) & self.mask

    def extract(self, word: int) -> int:
        """The field's value in ``word``."""
        value = (word & self.mask) >> self.offset
        if self.signed and value >> (self.width - 1):
            value -= 1 << self.width
        return value


class _Fields:
    """Common base of instruction and register formats: named fields in one number."""

    name: str
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(self._by_name) or "none"
            raise ValueError(f"{self.name} has no field {name!r}; its fields: {known}") from None

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def used_mask(self) -> int:
        """Every bit that belongs to a field."""
        mask = 0
        for field in self.fields:
            mask |= field.mask
        return mask

    def pack(self, **values: int) -> int:
        """The number with the given fields; fields not given are 0."""
        word, fields = 0, self._by_name
        for name, value in values.items():
            field = fields.get(name) or self.field(name)
            # What most values are is not left to insert, which takes three times as long.
            if type(value) in (int, bool) and 0 <= value <= field.maximum:
                word |= value << field.offset
            else:
                word |= field.insert(value)
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Every field's value in ``word``."""
        return {field.name: field.extract(word) for field in self.fields}


@dataclass(frozen=True)
class RegisterFormat(_Fields):
    """A configuration register: its 64-bit value's fields, and whether writing it starts work (``is_action``)."""

    number: Register
    name: str
    description: str
    fields: tuple[Field, ...]
    is_action: bool = False


@dataclass(frozen=True)
class Format(_Fields):
    """One instruction of the set."""

    opcode: Opcode
    name: str
    description: str
    fields: tuple[Field, ...]

    @property
    def mnemonic(self) -> str:
        """The name in assembly."""
        return self.name.lower()

    @cached_property
    def defined_mask(self) -> int:
        """Opcode and fields; every other bit is reserved and 0."""
        return 0xFF | self.used_mask

    @cached_property
    def implemented(self) -> dict[str, tuple[int, ...]]:
        """The values that the hardware executes, of the fields where these are not all."""
        return {field.name: field.implemented for field in self.fields if field.implemented is not None}

    def __call__(self, **values: int) -> Instruction:
        """An instruction of this format; fields not given are 0.

        Raises
        ------
        TypeError, ValueError
            A field is unknown or its value does not fit.
        """
        return Instruction(int(self.opcode) | self.pack(**values))


def _address(name: str, offset: int, width: int, what: str) -> Field:
    return Field(name, offset, width, what)


_UNIFIED_BUFFER = _address("unified_buffer", 16, 24, "first unified buffer row")
_ACCUMULATOR = _address("accumulator", 40, 16, "first accumulator row")
_HOST_ROWS = Field("rows", 40, 24, "rows of S bytes; at least 1")
_HOST = _address("host", 64, 64, "byte address in host memory; a multiple of min(S, host beat) bytes")
_TAG = Field("tag", 32, 32, "number that the event carries")
_ACCUMULATE = Field("accumulate", 8, 1, "add to the accumulators instead of overwriting them")
_NEXT_TILE = Field("next_tile", 9, 1, "take the next tile of the weight FIFO instead of reusing the one in the array")
_WIDE_INPUT = Field(
    "wide_input", 10, 1, "int16 inputs without zero point: two unified buffer rows each, low bytes first"
)
_WIDE_WEIGHTS = Field("wide_weights", 11, 1, "int16 weights: takes two tiles, low bytes first; needs `next_tile`")


class Pooling(IntEnum):
    """How Activate reduces a window of rows."""

    NONE = 0
    MAX = 1
    AVERAGE = 2


class Operand(IntEnum):
    """How Activate combines a result with the second operand."""

    NONE = 0
    ADD = 1
    MULTIPLY = 2


FORMATS: tuple[Format, ...] = (
    Format(Opcode.NOP, "Nop", "Does nothing.", ()),
    Format(
        Opcode.HALT,
        "Halt",
        "Ends the program: waits until every unit has finished, empties the weight FIFO, forgets the tile in the "
        "array, and tells the host. The next instruction begins a new program with index 0. Memories and configuration "
        "registers keep their contents.",
        (),
    ),
    Format(
        Opcode.SYNCHRONIZE,
        "Synchronize",
        "Holds later instructions back until the named units have finished. Never needed for a right result: the "
        "hardware interlocks by itself.",
        (
            Field(
                "units",
                16,
                8,
                "bit 0 host read, 1 host write and Load_Weights, 2 weight (its queue of tiles is "
                "fetched or waits for room in the weight FIFO), 3 matrix, 4 activation; bits 5 to 7 must be 0",
            ),
        ),
    ),
    Format(
        Opcode.HOST_SYNCHRONIZE,
        "Host_Synchronize",
        "Waits until every unit has finished, tells the host, and waits for the host's acknowledgement.",
        (_TAG,),
    ),
    Format(
        Opcode.INTERRUPT_HOST,
        "Interrupt_Host",
        "Waits until every unit has finished, then interrupts the host.",
        (_TAG,),
    ),
    Format(
        Opcode.DEBUG_TAG,
        "Debug_Tag",
        "Sends an event when it is dispatched; waits for nothing.",
        (_TAG,),
    ),
    Format(
        Opcode.SET_CONFIGURATION,
        "Set_Configuration",
        "Writes one configuration register. Later instructions use the new value, earlier ones the old.",
        (
            Field("register", 16, 16, "number of the register", choices=Register),
            Field("value", 64, 64, "the register's fields"),
        ),
    ),
    Format(
        Opcode.READ_HOST_MEMORY,
        "Read_Host_Memory",
        "Copies `rows` rows of S bytes from host memory to the unified buffer; the bytes are contiguous in host "
        "memory.",
        (_UNIFIED_BUFFER, _HOST_ROWS, _HOST),
    ),
    Format(
        Opcode.READ_HOST_MEMORY_ALTERNATE,
        "Read_Host_Memory_Alternate",
        "The same with rows `HOST_STRIDE` bytes apart in host memory.",
        (_UNIFIED_BUFFER, _HOST_ROWS, _HOST),
    ),
    Format(
        Opcode.WRITE_HOST_MEMORY,
        "Write_Host_Memory",
        "Copies `rows` rows of S bytes from the unified buffer to contiguous host memory.",
        (_UNIFIED_BUFFER, _HOST_ROWS, _HOST),
    ),
    Format(
        Opcode.WRITE_HOST_MEMORY_ALTERNATE,
        "Write_Host_Memory_Alternate",
        "The same with rows `HOST_STRIDE` bytes apart in host memory; where rows overlap, the later row stays.",
        (_UNIFIED_BUFFER, _HOST_ROWS, _HOST),
    ),
    Format(
        Opcode.LOAD_WEIGHTS,
        "Load_Weights",
        "Queues S rows of the unified buffer for the weight FIFO as one tile, behind those of earlier Read_Weights and "
        "Load_Weights; so the array multiplies activations by activations. The unit of host writes executes it. Bytes "
        "are read as WEIGHT_FORMAT says, which must not be wide. When it is dispatched, fewer tiles than "
        "`weight_fifo_tiles`, of fewer instructions than `weight_queue_depth`, may be left that no matrix instruction "
        "has taken.",
        (
            Field("transposed", 8, 1, "row n holds the weights of all inputs for output n, not those of input n"),
            _UNIFIED_BUFFER,
        ),
    ),
    Format(
        Opcode.READ_WEIGHTS,
        "Read_Weights",
        "Queues `tiles` contiguous tiles of weight memory for the weight FIFO; finished once queued. A tile is S rows "
        "of S weights; row k holds the weights of input k for all outputs. Weights are read as WEIGHT_FORMAT says. At "
        "most `weight_queue_depth` Read_Weights and Load_Weights may have tiles that no MatrixMultiply has taken.",
        (
            Field("tiles", 16, 24, "tiles of S × S bytes; at least 1"),
            _address("weights", 64, 64, "byte address in weight memory; a multiple of min(S × S, weight beat) bytes"),
        ),
    ),
    Format(
        Opcode.MATRIX_MULTIPLY,
        "MatrixMultiply",
        "Multiplies `rows` rows of the unified buffer by one tile and writes or adds them to as many accumulator rows. "
        "Input bytes are read as INPUT_FORMAT says; sums are int32 and wrap. 16-bit operands take two passes over the "
        "rows, or four if both are wide.",
        (
            _ACCUMULATE,
            _NEXT_TILE,
            _WIDE_INPUT,
            _WIDE_WEIGHTS,
            _UNIFIED_BUFFER,
            _ACCUMULATOR,
            Field("rows", 56, 32, "rows to multiply; at least 1"),
        ),
    ),
    Format(
        Opcode.CONVOLVE,
        "Convolve",
        "MatrixMultiply over a plane of `height` × `width` outputs: output (y, x) reads the input row of plane "
        "position (y·stride_y + dy, x·stride_x + dx), zero outside the plane. CONVOLUTION_PLANE holds the plane's "
        "size, at least 1 × 1, and the strides; position (0, 0) is the first unified buffer row. One instruction for "
        "each kernel position and tile.",
        (
            _ACCUMULATE,
            _NEXT_TILE,
            _WIDE_INPUT,
            _WIDE_WEIGHTS,
            _UNIFIED_BUFFER,
            _ACCUMULATOR,
            Field("height", 56, 16, "output rows; at least 1"),
            Field("width", 72, 16, "output columns; at least 1"),
            Field("dy", 88, 16, "kernel position in y, padding subtracted", signed=True),
            Field("dx", 104, 16, "kernel position in x, padding subtracted", signed=True),
        ),
    ),
    Format(
        Opcode.ACTIVATE,
        "Activate",
        "Makes unified buffer rows of accumulator rows, or of other unified buffer rows (read as SOURCE_FORMAT says). "
        "In this order: pooling over windows of rows, each column's bias added, second operand (read as OPERAND_FORMAT "
        "says), each column's float32 scale, rounding to nearest even, zero point added, clamp, table. Sums are int32 "
        "and wrap. `rows` results of one, two or four bytes take as many unified buffer rows each, lowest bytes first; "
        "no row that is written may also be read.",
        (
            Field("from_unified_buffer", 8, 1, "the source is the unified buffer"),
            Field("table", 9, 1, "look the result up in table `table_number`; `BYTE` output only"),
            _UNIFIED_BUFFER,
            Field("source", 40, 24, "first accumulator row, or first unified buffer row of the source"),
            Field("rows", 64, 24, "results; at least 1"),
            Field("parameters", 88, 16, "parameter set with the columns' biases and scales"),
            Field(
                "output",
                104,
                4,
                "what is written: the low byte or the low 16 bits of the result, or the int32 sum itself, unscaled",
                choices=OutputFormat,
                implemented=tuple(OutputFormat),
            ),
            Field(
                "pooling",
                108,
                4,
                "maximum or sum (the divisor of an average is part of the scale) over POOLING_WINDOW",
                choices=Pooling,
                implemented=tuple(Pooling),
            ),
            Field(
                "operand",
                112,
                4,
                "second operand, one row of elements for each result: `ADD` it, scaled by OPERAND_SCALE, to the scaled "
                "sum (not with `INT32` output), or `MULTIPLY` the sum by it",
                choices=Operand,
                implemented=tuple(Operand),
            ),
            Field("table_number", 120, 3, "the table, if `table`", is_optional=True),
        ),
    ),
)
"""Every instruction, in the order of the documentation."""


def _operand_fields(what: str) -> tuple[Field, ...]:
    return (
        Field("zero_point", 0, 16, f"subtracted from every {what}; must fit the format", signed=True),
        Field("signed", 16, 1, "bytes are int8 rather than uint8"),
    )


def _element_fields() -> tuple[Field, ...]:
    return (
        Field("zero_point", 0, 17, "subtracted from every element; must fit the format", signed=True),
        Field("signed", 17, 1, "elements are int8 or int16 rather than uint8 or uint16"),
        Field("wide", 18, 1, "16-bit elements, two unified buffer rows each, low bytes first"),
    )


REGISTERS: tuple[RegisterFormat, ...] = (
    RegisterFormat(
        Register.INPUT_FORMAT,
        "INPUT_FORMAT",
        "How MatrixMultiply and Convolve read unified buffer bytes, unless they are wide.",
        _operand_fields("input"),
    ),
    RegisterFormat(
        Register.WEIGHT_FORMAT,
        "WEIGHT_FORMAT",
        "How Read_Weights reads weight memory bytes, and Load_Weights those of the unified buffer.",
        (
            *_operand_fields("weight"),
            Field(
                "wide",
                17,
                1,
                "int16 weights: of the tiles of a Read_Weights the first, third, … hold the low bytes, the others the "
                "high bytes; the other fields must be 0",
            ),
        ),
    ),
    RegisterFormat(
        Register.OUTPUT_FORMAT,
        "OUTPUT_FORMAT",
        "What Activate does after scaling. After reset both limits are 0, and so is every scaled result.",
        (
            Field("zero_point", 0, 18, "added after rounding", signed=True),
            Field("minimum", 18, 18, "lower limit of the result", signed=True),
            Field("maximum", 36, 18, "upper limit of the result; it wins over the lower one", signed=True),
        ),
    ),
    RegisterFormat(
        Register.HOST_STRIDE,
        "HOST_STRIDE",
        "Distance of rows in host memory for the alternate transfers.",
        (Field("stride", 0, 32, "bytes; a multiple of min(S, host beat)"),),
    ),
    RegisterFormat(
        Register.LOAD_PARAMETERS,
        "LOAD_PARAMETERS",
        "Loads `count` parameter sets from unified buffer rows, eight rows a set: row i holds byte i of every column's "
        "little-endian int32 bias (rows 0 to 3) and float32 scale (rows 4 to 7).",
        (
            Field("unified_buffer", 0, 24, "first unified buffer row"),
            Field("first", 24, 16, "first parameter set"),
            Field("count", 40, 16, "parameter sets; at least 1"),
        ),
        is_action=True,
    ),
    RegisterFormat(
        Register.LOAD_TABLE,
        "LOAD_TABLE",
        "Loads one of the activation unit's eight tables of 256 bytes: entry i is byte i mod S of unified buffer row "
        "i ÷ S. The low byte of the clamped result, taken as unsigned, is the index.",
        (
            Field("unified_buffer", 0, 24, "first unified buffer row"),
            Field("number", 56, 3, "the table", is_optional=True),
        ),
        is_action=True,
    ),
    RegisterFormat(
        Register.CONVOLUTION_PLANE,
        "CONVOLUTION_PLANE",
        "The plane that Convolve reads, row after row.",
        (
            Field("height", 0, 16, "rows of the plane"),
            Field("width", 16, 16, "columns of the plane"),
            Field("stride_y", 32, 8, "input rows per output row"),
            Field("stride_x", 40, 8, "input columns per output column"),
        ),
    ),
    RegisterFormat(
        Register.POOLING_WINDOW,
        "POOLING_WINDOW",
        "Window, stride and padding of pooling. Positions outside the plane do not count: the maximum of none is "
        "-2**31, the sum 0.",
        (
            Field("height", 0, 16, "rows of the window; pooling needs at least 1"),
            Field("width", 16, 16, "columns of the window; pooling needs at least 1"),
            Field("stride_y", 32, 8, "vertical stride"),
            Field("stride_x", 40, 8, "horizontal stride"),
            Field("pad_top", 48, 8, "rows of padding above"),
            Field("pad_left", 56, 8, "columns of padding on the left"),
        ),
    ),
    RegisterFormat(
        Register.POOLING_PLANE,
        "POOLING_PLANE",
        "The plane that is pooled, row after row, and the width of the one that comes out.",
        (
            Field("height", 0, 16, "input rows; pooling needs at least 1"),
            Field("width", 16, 16, "input columns; pooling needs at least 1"),
            Field("output_width", 32, 16, "output columns; pooling needs at least 1"),
        ),
    ),
    RegisterFormat(
        Register.OPERAND_ADDRESS,
        "OPERAND_ADDRESS",
        "Where Activate's second operand lies.",
        (Field("unified_buffer", 0, 24, "first unified buffer row"),),
    ),
    RegisterFormat(
        Register.OPERAND_SCALE,
        "OPERAND_SCALE",
        "Scale of Activate's second operand when it is added.",
        (Field("scale", 0, 32, "bits of a float32"),),
    ),
    RegisterFormat(
        Register.SOURCE_FORMAT,
        "SOURCE_FORMAT",
        "How Activate reads its source in the unified buffer.",
        _element_fields(),
    ),
    RegisterFormat(
        Register.OPERAND_FORMAT,
        "OPERAND_FORMAT",
        "How Activate reads its second operand.",
        _element_fields(),
    ),
)
"""Every configuration register, by number."""

_BY_OPCODE: Mapping[int, Format] = {int(format.opcode): format for format in FORMATS}
_BY_MNEMONIC: Mapping[str, Format] = {format.mnemonic: format for format in FORMATS}


def format_named(name: str) -> Format:
    """The format with this name, in any case.

    Raises
    ------
    ValueError
        No instruction has the name.
    """
    try:
        return _BY_MNEMONIC[name.lower()]
    except KeyError:
        raise ValueError(f"unknown instruction {name!r}; known: {', '.join(_BY_MNEMONIC)}") from None


@dataclass(frozen=True)
class Instruction:
    """One 16-byte word, legal or not. Make it with a :class:`Format`, or from a word with :func:`decode`."""

    word: int

    def __post_init__(self) -> None:
        if not 0 <= self.word < 1 << WORD_BITS:
            raise ValueError(f"an instruction word must be from 0 to 2**{WORD_BITS} - 1, not {self.word}")

    @cached_property
    def format(self) -> Format | None:
        """The format with this opcode, ``None`` when the opcode is unknown."""
        return _BY_OPCODE.get(self.word & 0xFF)

    @property
    def opcode(self) -> Opcode | None:
        """The operation, ``None`` when the opcode is unknown."""
        return None if self.format is None else self.format.opcode

    @property
    def name(self) -> str:
        """The name of the operation; the opcode itself when it is unknown."""
        return f"opcode {self.word & 0xFF:#04x}" if self.format is None else self.format.name

    @property
    def has_reserved_bits(self) -> bool:
        """Whether a bit outside every field of the format is set."""
        format = self.format
        return format is not None and bool(self.word & ~format.defined_mask)

    def __getitem__(self, name: str) -> int:
        """The value of field ``name``."""
        format = self.format
        if format is None:
            raise IllegalWordError(f"unknown opcode {self.word & 0xFF:#04x}")
        return format.field(name).extract(self.word)

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Every field's value."""
        return {} if self.format is None else self.format.unpack(self.word)

    def to_bytes(self) -> bytes:
        """The 16 bytes of the word, lowest first."""
        return self.word.to_bytes(WORD_BYTES, "little")


def decode(word: int) -> Instruction:
    """The instruction that ``word`` encodes.

    Raises
    ------
    IllegalWordError
        Unknown opcode, or a reserved bit set.
    """
    instruction = Instruction(word)
    if instruction.format is None:
        raise IllegalWordError(f"unknown opcode {word & 0xFF:#04x}")
    if instruction.has_reserved_bits:
        bits = word & ~instruction.format.defined_mask
        raise IllegalWordError(f"reserved bits {bits:#x} of {instruction.format.name} are set")
    return instruction


def encode_program(instructions: Iterable[Instruction]) -> NDArray[np.uint8]:
    """The words of a program as a uint8 array of shape (instructions, 16)."""
    data = b"".join(instruction.to_bytes() for instruction in instructions)
    return np.frombuffer(data, np.uint8).reshape(-1, WORD_BYTES).copy()


def register_format(number: int) -> RegisterFormat | None:
    """The register with this number, ``None`` when there is none."""
    return REGISTERS[number] if number < len(REGISTERS) else None


def _check_tables() -> None:
    for table in (*FORMATS, *REGISTERS):
        used = 0xFF if isinstance(table, Format) else 0
        for field in table.fields:
            assert not used & field.mask, f"{table.name}.{field.name} overlaps another field"
            used |= field.mask
    assert [int(register.number) for register in REGISTERS] == list(range(len(REGISTERS)))


_check_tables()
