"""Legality of programs: every fault, and the rules that depend on earlier instructions."""

from __future__ import annotations

import pytest

from openmxu.arch.config import Config
from openmxu.arch.effects import host_extent, table_rows
from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import FORMATS, Format, Instruction, Operand, OutputFormat, Pooling, Register, format_named
from openmxu.arch.legality import LegalityChecker
from tests.arch.programs import (
    CONFIG,
    HOST,
    LOAD_WEIGHTS,
    NEXT_TILE,
    READ_WEIGHTS,
    REUSE_TILE,
    configure,
    convolution_plane,
    fault,
    faults,
    fields,
    make,
    parameters,
    pooling,
)

HALT = make("halt")
BYTES = {OutputFormat.BYTE: 1, OutputFormat.WORD: 2, OutputFormat.INT32: 4}
HOST_TRANSFERS = ["read_host_memory", "read_host_memory_alternate", "write_host_memory", "write_host_memory_alternate"]


@pytest.mark.parametrize("name", ["nop", "halt", "host_synchronize", "interrupt_host", "debug_tag"])
def test_legal_in_any_state(name: str) -> None:
    assert fault(make(name)) is FaultCode.NONE


@pytest.mark.parametrize("opcode", sorted(set(range(256)) - {int(format.opcode) for format in FORMATS}))
def test_unknown_opcode(opcode: int) -> None:
    assert fault(Instruction(opcode)) is FaultCode.UNKNOWN_OPCODE
    assert fault(Instruction(opcode | ((1 << 120) - 1) << 8)) is FaultCode.UNKNOWN_OPCODE


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_reserved_bit(format: Format) -> None:
    for bit in range(8, 128):
        word = int(format.opcode) | 1 << bit
        reserved = not any(field.offset <= bit < field.offset + field.width for field in format.fields)
        assert (fault(Instruction(word)) is FaultCode.RESERVED_BITS) == reserved, bit


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (field.name, number)
        for field in format_named("activate").fields
        if field.implemented is not None
        for number in range(field.maximum + 1)
        if number not in field.implemented
    ],
)
def test_unimplemented(name: str, number: int) -> None:
    assert fault(make("activate", rows=1, **{name: number})) is FaultCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    "instruction",
    [
        make("synchronize", units=0b100000),
        make("synchronize", units=0b10000001),
        make("read_weights", tiles=0, weights=0x4000),
        make("read_weights", tiles=1, weights=0x4004),
        make("matrixmultiply", rows=0),
        make("activate", rows=0),
        *(make(name, rows=0, host=0x1000) for name in HOST_TRANSFERS),
        *(make(name, rows=1, host=0x1004) for name in HOST_TRANSFERS),
        configure(len(Register), 0),
        configure(0xFFFF, 0),
        configure(Register.INPUT_FORMAT, 1 << 17),
        configure(Register.OUTPUT_FORMAT, 1 << 54),
        configure(Register.HOST_STRIDE, 1 << 32),
        configure(Register.HOST_STRIDE, 12),
        configure(Register.LOAD_PARAMETERS, 1 << 56 | 1 << 40),
        configure(Register.LOAD_PARAMETERS, 0),
        configure(Register.LOAD_TABLE, 1 << 24),
        configure(Register.CONVOLUTION_PLANE, 1 << 48),
        configure(Register.POOLING_PLANE, 1 << 48),
        configure(Register.OPERAND_ADDRESS, 1 << 24),
        configure(Register.OPERAND_SCALE, 1 << 32),
        configure(Register.SOURCE_FORMAT, 1 << 19),
        configure(Register.OPERAND_FORMAT, 1 << 63),
        make("matrixmultiply", rows=1, wide_weights=1),
        make("activate", rows=1, table=1, output=OutputFormat.WORD),
        make("activate", rows=1, table=1, output=OutputFormat.INT32),
        make("activate", rows=1, operand=Operand.ADD, output=OutputFormat.INT32),
    ],
)
def test_illegal_value(instruction: Instruction) -> None:
    assert fault(instruction) is FaultCode.ILLEGAL_VALUE


@pytest.mark.parametrize("units", range(32))
def test_synchronize_takes_every_set_of_units(units: int) -> None:
    assert fault(make("synchronize", units=units)) is FaultCode.NONE


@pytest.mark.parametrize(
    "register", [Register.INPUT_FORMAT, Register.WEIGHT_FORMAT, Register.SOURCE_FORMAT, Register.OPERAND_FORMAT]
)
@pytest.mark.parametrize(
    ("signed", "zero_point", "legal"),
    [
        (0, 0, True),
        (0, 255, True),
        (0, 256, False),
        (0, -1, False),
        (1, -128, True),
        (1, 127, True),
        (1, 128, False),
        (1, -129, False),
    ],
)
def test_zero_points_fit_the_format(register: Register, signed: int, zero_point: int, legal: bool) -> None:
    expected = FaultCode.NONE if legal else FaultCode.ILLEGAL_VALUE
    assert fault(fields(register, zero_point=zero_point, signed=signed)) is expected


@pytest.mark.parametrize("register", [Register.SOURCE_FORMAT, Register.OPERAND_FORMAT])
@pytest.mark.parametrize(
    ("signed", "zero_point", "legal"),
    [
        (0, 0, True),
        (0, 65535, True),
        (0, -1, False),
        (0, -65536, False),
        (1, -32768, True),
        (1, 32767, True),
        (1, 32768, False),
        (1, -32769, False),
    ],
)
def test_zero_points_fit_a_wide_format(register: Register, signed: int, zero_point: int, legal: bool) -> None:
    expected = FaultCode.NONE if legal else FaultCode.ILLEGAL_VALUE
    assert fault(fields(register, zero_point=zero_point, signed=signed, wide=1)) is expected


@pytest.mark.parametrize(
    ("others", "legal"),
    [
        ({}, True),
        ({"zero_point": 1}, False),
        ({"signed": 1}, False),
        ({"signed": 1, "zero_point": -1}, False),
    ],
)
def test_wide_weights_have_no_other_format(others: dict[str, int], legal: bool) -> None:
    expected = FaultCode.NONE if legal else FaultCode.ILLEGAL_VALUE
    assert fault(fields(Register.WEIGHT_FORMAT, wide=1, **others)) is expected


@pytest.mark.parametrize(("height", "width"), [(0, 0), (0, 5), (5, 0)])
def test_a_convolution_needs_a_plane_and_outputs(height: int, width: int) -> None:
    tile = (READ_WEIGHTS, NEXT_TILE)
    assert fault(*tile, make("convolve", height=2, width=2)) is FaultCode.ILLEGAL_VALUE  # no plane after reset
    empty = [*tile, convolution_plane(height, width)]
    assert fault(*empty) is FaultCode.NONE
    assert fault(*empty, make("convolve", height=2, width=2)) is FaultCode.ILLEGAL_VALUE
    full = [*tile, convolution_plane(2, 2)]
    assert fault(*full, make("convolve", height=height, width=width)) is FaultCode.ILLEGAL_VALUE
    assert fault(*full, make("convolve", height=2, width=2)) is FaultCode.NONE
    # MatrixMultiply does not use the plane.
    assert fault(*empty, REUSE_TILE) is FaultCode.NONE


@pytest.mark.parametrize("mode", [Pooling.MAX, Pooling.AVERAGE])
def test_pooling_needs_a_plane_and_a_window(mode: Pooling) -> None:
    pool = make("activate", rows=1, pooling=mode)
    assert fault(*pooling(1, 1, output_width=1, window=(1, 1)), pool) is FaultCode.NONE
    for empty in (
        [],
        pooling(0, 1),
        pooling(1, 0),
        pooling(1, 1, output_width=0),
        pooling(1, 1, window=(0, 1)),
        pooling(1, 1, window=(1, 0)),
    ):
        assert fault(*empty, pool) is FaultCode.ILLEGAL_VALUE
        assert fault(*empty, make("activate", rows=1)) is FaultCode.NONE


@pytest.mark.parametrize(
    ("legal", "too_far"),
    [
        (make("read_host_memory", unified_buffer=0, rows=100, host=0x1000), {"rows": 101}),
        (make("read_host_memory", unified_buffer=99, rows=1, host=0x1000), {"unified_buffer": 100}),
        (make("write_host_memory", unified_buffer=90, rows=10, host=0x1000), {"rows": 11}),
        (make("activate", unified_buffer=90, rows=10), {"unified_buffer": 91}),
        (make("activate", unified_buffer=60, rows=10, output=OutputFormat.INT32), {"unified_buffer": 61}),
        (make("activate", unified_buffer=60, rows=10, output=OutputFormat.INT32), {"rows": 11}),
    ],
)
def test_unified_buffer_range(legal: Instruction, too_far: dict[str, int]) -> None:
    assert fault(legal) is FaultCode.NONE
    changed = legal.format(**{**legal.values, **too_far})
    assert fault(changed) is FaultCode.UNIFIED_BUFFER_RANGE


def test_unified_buffer_range_of_a_multiplication_and_of_parameters() -> None:
    assert fault(READ_WEIGHTS, make("matrixmultiply", next_tile=1, unified_buffer=60, rows=40)) is FaultCode.NONE
    beyond = make("matrixmultiply", next_tile=1, unified_buffer=61, rows=40)
    assert fault(READ_WEIGHTS, beyond) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(parameters(84, 0, 2)) is FaultCode.NONE
    assert fault(parameters(85, 0, 2)) is FaultCode.UNIFIED_BUFFER_RANGE


@pytest.mark.parametrize("output", OutputFormat)
def test_unified_buffer_range_of_results(output: OutputFormat) -> None:
    rows = 16 // BYTES[output]
    assert fault(make("activate", unified_buffer=84, rows=rows, output=output)) is FaultCode.NONE
    assert fault(make("activate", unified_buffer=85, rows=rows, output=output)) is FaultCode.UNIFIED_BUFFER_RANGE
    more = make("activate", unified_buffer=84, rows=rows + 1, output=output)
    assert fault(more) is FaultCode.UNIFIED_BUFFER_RANGE


@pytest.mark.parametrize("wide", [0, 1])
def test_unified_buffer_range_of_inputs(wide: int) -> None:
    rows = 20 >> wide
    before = [READ_WEIGHTS, convolution_plane(2, rows // 2)]
    for legal in (
        make("matrixmultiply", next_tile=1, wide_input=wide, unified_buffer=80, rows=rows),
        make("convolve", next_tile=1, wide_input=wide, unified_buffer=80, height=1, width=1),
    ):
        assert fault(*before, legal) is FaultCode.NONE
        beyond = legal.format(**{**legal.values, "unified_buffer": 81})
        assert fault(*before, beyond) is FaultCode.UNIFIED_BUFFER_RANGE


@pytest.mark.parametrize("wide", [0, 1])
def test_unified_buffer_range_of_elements(wide: int) -> None:
    rows = 20 >> wide
    source_format = fields(Register.SOURCE_FORMAT, wide=wide)
    operand_format = fields(Register.OPERAND_FORMAT, wide=wide)
    # Without a plane, the source has as many rows as the results.
    for before, values in (
        ([source_format], {"rows": rows}),
        ([source_format, *pooling(2, rows // 2)], {"rows": 3, "pooling": Pooling.MAX}),
    ):
        legal = make("activate", from_unified_buffer=1, source=80, **values)
        assert fault(*before, legal) is FaultCode.NONE
        beyond = make("activate", from_unified_buffer=1, source=81, **values)
        assert fault(*before, beyond) is FaultCode.UNIFIED_BUFFER_RANGE
        # Without from_unified_buffer the same numbers are accumulator rows, which have no format.
        assert fault(*before, make("activate", source=30, **values)) is FaultCode.NONE
        assert fault(*before, make("activate", source=80, **values)) is FaultCode.ACCUMULATOR_RANGE
    for operand in (Operand.ADD, Operand.MULTIPLY):
        activate = make("activate", rows=rows, operand=operand)
        for address, expected in ((80, FaultCode.NONE), (81, FaultCode.UNIFIED_BUFFER_RANGE)):
            before = [operand_format, fields(Register.OPERAND_ADDRESS, unified_buffer=address)]
            assert fault(*before, activate) is expected
    beyond = fields(Register.OPERAND_ADDRESS, unified_buffer=200)
    assert fault(beyond, make("activate", rows=1)) is FaultCode.NONE


@pytest.mark.parametrize(("size", "rows"), [(2, 128), (8, 32), (64, 4), (256, 1)])
def test_unified_buffer_range_of_a_table(size: int, rows: int) -> None:
    config = Config.for_size(size, unified_buffer_rows=200)
    assert table_rows(size) == rows
    loads = [fields(Register.LOAD_TABLE, unified_buffer=200 - rows + further) for further in (0, 1)]
    assert faults(*loads, config=config) == [FaultCode.NONE, FaultCode.UNIFIED_BUFFER_RANGE]


def test_a_convolution_reads_all_of_its_plane() -> None:
    """The range check covers the whole plane, whichever positions the outputs need."""
    before = [READ_WEIGHTS, NEXT_TILE, convolution_plane(10, 10)]
    assert fault(*before, make("convolve", height=1, width=1)) is FaultCode.NONE
    beyond = make("convolve", unified_buffer=1, height=1, width=1)
    assert fault(*before, beyond) is FaultCode.UNIFIED_BUFFER_RANGE
    huge = fields(Register.CONVOLUTION_PLANE, height=2**16 - 1, width=2**16 - 1)
    far = make("convolve", unified_buffer=2**24 - 1, height=1, width=1, wide_input=1)
    assert fault(READ_WEIGHTS, NEXT_TILE, huge, far) is FaultCode.UNIFIED_BUFFER_RANGE


def test_ranges_do_not_wrap() -> None:
    largest = (1 << 24) - 1
    assert fault(make("activate", unified_buffer=largest, rows=largest)) is FaultCode.UNIFIED_BUFFER_RANGE
    int32 = make("activate", rows=1 << 22, output=OutputFormat.INT32)
    assert fault(int32) is FaultCode.UNIFIED_BUFFER_RANGE
    huge = pooling(2**16 - 1, 2**16 - 1)
    assert fault(*huge, make("activate", rows=1, pooling=Pooling.MAX)) is FaultCode.ACCUMULATOR_RANGE
    wide_source = [*huge, fields(Register.SOURCE_FORMAT, wide=1)]
    pool = make("activate", rows=1, pooling=Pooling.MAX, from_unified_buffer=1, source=largest)
    assert fault(*wide_source, pool) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(make("read_host_memory", unified_buffer=largest, rows=1, host=0)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(make("read_host_memory", rows=1, host=2**64 - 8)) is FaultCode.HOST_WINDOW
    assert fault(make("read_weights", tiles=1, weights=2**64 - 64)) is FaultCode.WEIGHT_WINDOW


def test_accumulator_range() -> None:
    assert fault(make("activate", source=40, rows=10)) is FaultCode.NONE
    assert fault(make("activate", source=41, rows=10)) is FaultCode.ACCUMULATOR_RANGE
    assert fault(READ_WEIGHTS, make("matrixmultiply", next_tile=1, accumulator=0, rows=50)) is FaultCode.NONE
    beyond = make("matrixmultiply", next_tile=1, accumulator=0, rows=51)
    assert fault(READ_WEIGHTS, beyond) is FaultCode.ACCUMULATOR_RANGE


def test_accumulator_range_of_planes() -> None:
    before = [READ_WEIGHTS, NEXT_TILE, convolution_plane(1, 1)]
    assert fault(*before, make("convolve", accumulator=20, height=5, width=6)) is FaultCode.NONE
    assert fault(*before, make("convolve", accumulator=21, height=5, width=6)) is FaultCode.ACCUMULATOR_RANGE
    huge = make("convolve", height=2**16 - 1, width=2**16 - 1)
    assert fault(*before, huge) is FaultCode.ACCUMULATOR_RANGE
    plane = pooling(5, 6)
    assert fault(*plane, make("activate", source=20, rows=90, pooling=Pooling.MAX)) is FaultCode.NONE
    assert fault(*plane, make("activate", source=21, rows=1, pooling=Pooling.MAX)) is FaultCode.ACCUMULATOR_RANGE
    # 16-bit inputs take two rows of the unified buffer, but one of the accumulators.
    wide = make("matrixmultiply", wide_input=1, accumulator=0, rows=50)
    assert fault(*before, wide) is FaultCode.NONE


def test_parameter_range() -> None:
    assert fault(parameters(0, 9, 1)) is FaultCode.NONE
    assert fault(parameters(0, 10, 1)) is FaultCode.PARAMETER_RANGE
    assert fault(parameters(0, 8, 3)) is FaultCode.PARAMETER_RANGE
    assert fault(make("activate", rows=1, parameters=9)) is FaultCode.NONE
    assert fault(make("activate", rows=1, parameters=10)) is FaultCode.PARAMETER_RANGE


@pytest.mark.parametrize("name", ["read_host_memory", "write_host_memory"])
def test_host_window(name: str) -> None:
    assert fault(make(name, rows=4, host=0x1000)) is FaultCode.NONE
    assert fault(make(name, rows=4, host=0x0FF8)) is FaultCode.HOST_WINDOW
    assert fault(make(name, rows=4, host=0x2000 - 32)) is FaultCode.NONE
    assert fault(make(name, rows=4, host=0x2000 - 24)) is FaultCode.HOST_WINDOW


@pytest.mark.parametrize("name", ["read_host_memory_alternate", "write_host_memory_alternate"])
def test_host_window_with_a_stride(name: str) -> None:
    stride = configure(Register.HOST_STRIDE, 0x400)
    assert fault(stride, make(name, rows=4, host=0x1000)) is FaultCode.NONE
    assert fault(stride, make(name, rows=4, host=0x13F8)) is FaultCode.NONE
    assert fault(stride, make(name, rows=4, host=0x1400)) is FaultCode.HOST_WINDOW
    assert fault(stride, make(name, rows=5, host=0x1000)) is FaultCode.HOST_WINDOW
    assert fault(make(name, rows=100, host=0x1FF8)) is FaultCode.NONE  # stride 0: the same row each time
    # The contiguous transfer does not use the stride.
    assert fault(stride, make("read_host_memory", rows=5, host=0x1000)) is FaultCode.NONE


def test_weight_window() -> None:
    assert fault(make("read_weights", tiles=64, weights=0x4000)) is FaultCode.NONE
    assert fault(make("read_weights", tiles=65, weights=0x4000)) is FaultCode.WEIGHT_WINDOW
    assert fault(make("read_weights", tiles=1, weights=0x3FF8)) is FaultCode.WEIGHT_WINDOW
    assert fault(make("read_weights", tiles=1, weights=0x4FC8)) is FaultCode.WEIGHT_WINDOW


def test_unknown_windows_are_not_checked() -> None:
    checker = LegalityChecker(CONFIG)
    assert checker.check(make("read_host_memory", rows=1, host=2**63)) is FaultCode.NONE
    assert checker.check(make("read_weights", tiles=2**24 - 1, weights=2**63)) is FaultCode.NONE


@pytest.mark.parametrize(("rows", "size", "stride", "extent"), [(1, 8, 99, 8), (3, 8, 8, 24), (3, 8, 64, 136)])
def test_host_extent(rows: int, size: int, stride: int, extent: int) -> None:
    assert host_extent(rows, size, stride) == extent


def test_no_tile_is_queued() -> None:
    assert fault(NEXT_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, NEXT_TILE, NEXT_TILE) is FaultCode.NO_TILE
    two = make("read_weights", tiles=2, weights=0x4000)
    assert fault(two, NEXT_TILE, NEXT_TILE) is FaultCode.NONE
    assert fault(two, NEXT_TILE, NEXT_TILE, NEXT_TILE) is FaultCode.NO_TILE


@pytest.mark.parametrize("name", ["matrixmultiply", "convolve"])
def test_wide_weights_need_two_tiles(name: str) -> None:
    shape = {"rows": 1} if name == "matrixmultiply" else {"height": 1, "width": 1}
    wide = make(name, next_tile=1, wide_weights=1, **shape)
    begin, two = convolution_plane(1, 1), make("read_weights", tiles=2, weights=0x4000)
    assert fault(begin, wide) is FaultCode.NO_TILE
    assert fault(begin, READ_WEIGHTS, wide) is FaultCode.NO_TILE
    assert fault(begin, two, wide) is FaultCode.NONE
    assert fault(begin, two, wide, make(name, **shape)) is FaultCode.NONE
    assert fault(begin, two, wide, make(name, next_tile=1, **shape)) is FaultCode.NO_TILE
    # The two tiles may come from two Read_Weights.
    assert fault(begin, READ_WEIGHTS, READ_WEIGHTS, wide) is FaultCode.NONE
    assert fault(begin, two, NEXT_TILE, READ_WEIGHTS, wide) is FaultCode.NONE
    assert fault(begin, two, NEXT_TILE, wide) is FaultCode.NO_TILE


def test_no_tile_is_in_the_array() -> None:
    assert fault(REUSE_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, REUSE_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, NEXT_TILE, REUSE_TILE, REUSE_TILE) is FaultCode.NONE


def test_weight_queue_full() -> None:
    assert fault(*[READ_WEIGHTS] * 3) is FaultCode.NONE
    assert fault(*[READ_WEIGHTS] * 4) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*[READ_WEIGHTS] * 3, NEXT_TILE, READ_WEIGHTS) is FaultCode.NONE
    assert fault(*[READ_WEIGHTS] * 3, NEXT_TILE, REUSE_TILE, READ_WEIGHTS, READ_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL


def test_load_weights_leaves_room_for_its_tile() -> None:
    """Tiles before its own are taken by instructions that come before it, so that it never waits for ever."""
    assert fault(*[LOAD_WEIGHTS] * 3) is FaultCode.NONE
    assert fault(*[LOAD_WEIGHTS] * 4) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*[LOAD_WEIGHTS] * 3, NEXT_TILE, LOAD_WEIGHTS) is FaultCode.NONE
    two_tiles = CONFIG.replace(weight_fifo_tiles=2)
    assert faults(*[LOAD_WEIGHTS] * 3, config=two_tiles)[1:] == [FaultCode.NONE, FaultCode.WEIGHT_QUEUE_FULL]

    def last(*instructions: Instruction) -> FaultCode:
        return faults(*instructions, config=two_tiles)[-1]

    two_reads = make("read_weights", tiles=2, weights=0x4000)
    assert last(READ_WEIGHTS, LOAD_WEIGHTS) is FaultCode.NONE
    assert last(two_reads, LOAD_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL
    assert last(two_reads, NEXT_TILE, LOAD_WEIGHTS) is FaultCode.NONE
    assert last(LOAD_WEIGHTS, READ_WEIGHTS, LOAD_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL
    assert last(LOAD_WEIGHTS, READ_WEIGHTS, NEXT_TILE, LOAD_WEIGHTS) is FaultCode.NONE
    assert last(two_reads, make("halt"), LOAD_WEIGHTS) is FaultCode.NONE


def test_load_weights_reads_a_tile() -> None:
    assert fault(make("load_weights", unified_buffer=92)) is FaultCode.NONE
    assert fault(make("load_weights", unified_buffer=93)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(fields(Register.WEIGHT_FORMAT, wide=1), LOAD_WEIGHTS) is FaultCode.ILLEGAL_VALUE


def test_a_queue_entry_is_free_once_its_last_tile_is_taken() -> None:
    three = make("read_weights", tiles=3, weights=0x4000)
    full = [three, READ_WEIGHTS, READ_WEIGHTS]
    assert fault(*full, NEXT_TILE, NEXT_TILE, READ_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*full, NEXT_TILE, NEXT_TILE, NEXT_TILE, READ_WEIGHTS) is FaultCode.NONE
    wide = make("matrixmultiply", rows=1, next_tile=1, wide_weights=1)
    assert fault(*full, wide, READ_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*full, NEXT_TILE, wide, READ_WEIGHTS) is FaultCode.NONE
    # One of the tiles is the last of the first Read_Weights, the other the only one of the second.
    assert fault(*full, wide, wide, READ_WEIGHTS, READ_WEIGHTS) is FaultCode.NONE
    assert fault(*full, wide, wide, *[READ_WEIGHTS] * 3) is FaultCode.WEIGHT_QUEUE_FULL


@pytest.mark.parametrize(
    ("operand", "output"),
    [
        *((operand, output) for operand in (Operand.NONE, Operand.MULTIPLY) for output in OutputFormat),
        (Operand.ADD, OutputFormat.BYTE),
        (Operand.ADD, OutputFormat.WORD),
    ],
)
@pytest.mark.parametrize("wide", [0, 1])
def test_unified_buffer_overlap(operand: Operand, wide: int, output: OutputFormat) -> None:
    """Rows from 40 on are read, as source or operand; the rows written are moved across them."""
    if operand is Operand.NONE:
        before = [fields(Register.SOURCE_FORMAT, wide=wide)]
        values = {"from_unified_buffer": 1, "source": 40}
    else:
        before = [fields(Register.OPERAND_FORMAT, wide=wide), fields(Register.OPERAND_ADDRESS, unified_buffer=40)]
        values = {"operand": operand}
    written = 3 * BYTES[output]

    def code(first: int) -> FaultCode:
        return fault(*before, make("activate", unified_buffer=first, rows=3, output=output, **values))

    end = 40 + (3 << wide)
    for first in range(100 - written + 1):
        overlaps = first < end and first + written > 40
        assert code(first) is (FaultCode.UNIFIED_BUFFER_OVERLAP if overlaps else FaultCode.NONE), first


def test_unified_buffer_overlap_with_a_plane() -> None:
    """A plane is read as a whole, however few results there are."""
    before = [*pooling(3, 4), fields(Register.SOURCE_FORMAT, wide=1)]
    values = {"from_unified_buffer": 1, "source": 40, "rows": 1, "pooling": Pooling.MAX}
    for first, expected in {
        39: FaultCode.NONE,
        40: FaultCode.UNIFIED_BUFFER_OVERLAP,
        63: FaultCode.UNIFIED_BUFFER_OVERLAP,
        64: FaultCode.NONE,
    }.items():
        assert fault(*before, make("activate", unified_buffer=first, **values)) is expected
    # Source and operand may overlap, and accumulator rows with the same numbers do not overlap with them.
    both = [*before, fields(Register.OPERAND_ADDRESS, unified_buffer=40)]
    assert fault(*both, make("activate", unified_buffer=39, operand=Operand.MULTIPLY, **values)) is FaultCode.NONE
    assert fault(*before, make("activate", unified_buffer=10, source=10, rows=1)) is FaultCode.NONE


def test_halt_discards_tiles() -> None:
    assert fault(READ_WEIGHTS, READ_WEIGHTS, NEXT_TILE, HALT, NEXT_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, READ_WEIGHTS, NEXT_TILE, HALT, REUSE_TILE) is FaultCode.NO_TILE
    assert fault(*[READ_WEIGHTS] * 3, HALT, *[READ_WEIGHTS] * 3) is FaultCode.NONE


def test_halt_keeps_configuration_registers() -> None:
    checker = LegalityChecker(CONFIG, host=HOST)
    for instruction in (configure(Register.HOST_STRIDE, 0x400), HALT):
        assert checker.check(instruction) is FaultCode.NONE
    assert checker.register(Register.HOST_STRIDE) == {"stride": 0x400}
    assert checker.check(make("read_host_memory_alternate", rows=5, host=0x1000)) is FaultCode.HOST_WINDOW


def test_a_faulting_instruction_changes_nothing() -> None:
    codes = faults(
        configure(Register.INPUT_FORMAT, 300),
        make("read_weights", tiles=0, weights=0x4000),
        NEXT_TILE,
        READ_WEIGHTS,
        make("matrixmultiply", next_tile=1, rows=51),
        NEXT_TILE,
    )
    assert codes == [
        FaultCode.ILLEGAL_VALUE,
        FaultCode.ILLEGAL_VALUE,
        FaultCode.NO_TILE,
        FaultCode.NONE,
        FaultCode.ACCUMULATOR_RANGE,
        FaultCode.NONE,
    ]
    checker = LegalityChecker(CONFIG)
    assert checker.check(configure(Register.INPUT_FORMAT, 300)) is FaultCode.ILLEGAL_VALUE
    assert checker.register(Register.INPUT_FORMAT) == {"zero_point": 0, "signed": 0}


def test_begin_program_discards_tiles() -> None:
    checker = LegalityChecker(CONFIG)
    for instruction in (READ_WEIGHTS, READ_WEIGHTS, NEXT_TILE):
        assert checker.check(instruction) is FaultCode.NONE
    checker.begin_program()
    assert checker.check(NEXT_TILE) is FaultCode.NO_TILE
    assert checker.check(REUSE_TILE) is FaultCode.NO_TILE


def test_every_fault_has_a_description() -> None:
    assert list(FAULT_DESCRIPTIONS) == [code for code in FaultCode if code is not FaultCode.NONE]
