"""Which programs are legal: every fault, and the rules that depend on earlier instructions."""

from __future__ import annotations

import pytest

from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import FORMATS, Format, Instruction, Operand, OutputFormat, Pooling, Register
from openmxu.arch.legality import LegalityChecker, host_extent
from tests.arch.programs import (
    CONFIG,
    HOST,
    NEXT_TILE,
    READ_WEIGHTS,
    REUSE_TILE,
    configure,
    fault,
    faults,
    make,
    parameters,
)

HALT = make("halt")
HOST_TRANSFERS = ["read_host_memory", "read_host_memory_alternate", "write_host_memory", "write_host_memory_alternate"]


@pytest.mark.parametrize("name", ["nop", "halt", "host_synchronize", "interrupt_host", "debug_tag"])
def test_legal_whatever_the_state(name: str) -> None:
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
    "instruction",
    [
        make("convolve"),
        make("matrixmultiply", rows=1, wide_input=1),
        make("matrixmultiply", rows=1, wide_weights=1),
        make("activate", rows=1, from_unified_buffer=1),
        make("activate", rows=1, table=1),
        make("activate", rows=1, output=OutputFormat.WORD),
        make("activate", rows=1, output=3),
        make("activate", rows=1, output=15),
        make("activate", rows=1, pooling=Pooling.MAX),
        make("activate", rows=1, operand=Operand.ADD),
        *(configure(register, 0) for register in Register if register >= Register.LOAD_TABLE),
    ],
)
def test_unimplemented(instruction: Instruction) -> None:
    assert fault(instruction) is FaultCode.UNIMPLEMENTED


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
    ],
)
def test_illegal_value(instruction: Instruction) -> None:
    assert fault(instruction) is FaultCode.ILLEGAL_VALUE


@pytest.mark.parametrize("units", range(32))
def test_synchronize_takes_every_set_of_units(units: int) -> None:
    assert fault(make("synchronize", units=units)) is FaultCode.NONE


@pytest.mark.parametrize("register", [Register.INPUT_FORMAT, Register.WEIGHT_FORMAT])
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
    assert fault(configure(register, zero_point & 0xFFFF | signed << 16)) is expected


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


def test_ranges_do_not_wrap() -> None:
    largest = (1 << 24) - 1
    assert fault(make("activate", unified_buffer=largest, rows=2**32 - 1)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(make("read_host_memory", unified_buffer=largest, rows=1, host=0)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(make("read_host_memory", rows=1, host=2**64 - 8)) is FaultCode.HOST_WINDOW
    assert fault(make("read_weights", tiles=1, weights=2**64 - 64)) is FaultCode.WEIGHT_WINDOW


def test_accumulator_range() -> None:
    assert fault(make("activate", accumulator=40, rows=10)) is FaultCode.NONE
    assert fault(make("activate", accumulator=41, rows=10)) is FaultCode.ACCUMULATOR_RANGE
    assert fault(READ_WEIGHTS, make("matrixmultiply", next_tile=1, accumulator=0, rows=50)) is FaultCode.NONE
    beyond = make("matrixmultiply", next_tile=1, accumulator=0, rows=51)
    assert fault(READ_WEIGHTS, beyond) is FaultCode.ACCUMULATOR_RANGE


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
    assert fault(make(name, rows=100, host=0x1FF8)) is FaultCode.NONE  # stride 0: one row, over and over
    # The contiguous transfer does not look at the stride.
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


def test_no_tile_is_in_the_array() -> None:
    assert fault(REUSE_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, REUSE_TILE) is FaultCode.NO_TILE
    assert fault(READ_WEIGHTS, NEXT_TILE, REUSE_TILE, REUSE_TILE) is FaultCode.NONE


def test_weight_queue_full() -> None:
    assert fault(*[READ_WEIGHTS] * 3) is FaultCode.NONE
    assert fault(*[READ_WEIGHTS] * 4) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*[READ_WEIGHTS] * 3, NEXT_TILE, READ_WEIGHTS) is FaultCode.NONE
    assert fault(*[READ_WEIGHTS] * 3, NEXT_TILE, REUSE_TILE, READ_WEIGHTS, READ_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL


def test_a_queue_entry_is_free_once_its_last_tile_is_taken() -> None:
    three = make("read_weights", tiles=3, weights=0x4000)
    full = [three, READ_WEIGHTS, READ_WEIGHTS]
    assert fault(*full, NEXT_TILE, NEXT_TILE, READ_WEIGHTS) is FaultCode.WEIGHT_QUEUE_FULL
    assert fault(*full, NEXT_TILE, NEXT_TILE, NEXT_TILE, READ_WEIGHTS) is FaultCode.NONE


def test_halt_forgets_tiles() -> None:
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


def test_begin_program_forgets_tiles_as_clearing_a_fault_does() -> None:
    checker = LegalityChecker(CONFIG)
    for instruction in (READ_WEIGHTS, READ_WEIGHTS, NEXT_TILE):
        assert checker.check(instruction) is FaultCode.NONE
    checker.begin_program()
    assert checker.check(NEXT_TILE) is FaultCode.NO_TILE
    assert checker.check(REUSE_TILE) is FaultCode.NO_TILE


def test_every_fault_has_a_description() -> None:
    assert list(FAULT_DESCRIPTIONS) == [code for code in FaultCode if code is not FaultCode.NONE]
