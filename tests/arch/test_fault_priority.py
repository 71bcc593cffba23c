"""An instruction with several defects reports the lowest fault code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Operand, OutputFormat, Pooling, Register
from tests.arch.programs import NEXT_TILE, READ_WEIGHTS, configure, convolution_plane, fault, make, parameters


def with_defects(defects: list[FaultCode], base: str, values: dict[FaultCode, dict[str, int]]) -> Instruction:
    """Instruction ``base`` with all of ``defects``; if several change the same field, the lowest code wins."""
    merged: dict[str, int] = {}
    for code in sorted(defects, reverse=True):
        merged |= values.get(code, {})
    word = make(base, **merged).word
    if FaultCode.RESERVED_BITS in defects:
        word |= 1 << 127 if base in ("matrixmultiply", "convolve", "activate") else 1 << 12
    if FaultCode.UNKNOWN_OPCODE in defects:
        word |= 0xFF
    return Instruction(word)


PRIORITIES = {
    "activate": {
        FaultCode.UNKNOWN_OPCODE: {},
        FaultCode.RESERVED_BITS: {},
        FaultCode.UNIMPLEMENTED: {"output": 15},
        FaultCode.ILLEGAL_VALUE: {"rows": 0},
        FaultCode.UNIFIED_BUFFER_RANGE: {"rows": 1, "unified_buffer": 101},
        FaultCode.ACCUMULATOR_RANGE: {"rows": 1, "source": 51},
        FaultCode.PARAMETER_RANGE: {"rows": 1, "parameters": 10},
        FaultCode.UNIFIED_BUFFER_OVERLAP: {"rows": 1, "operand": Operand.MULTIPLY},
    },
    "matrixmultiply": {
        FaultCode.UNKNOWN_OPCODE: {},
        FaultCode.RESERVED_BITS: {},
        FaultCode.ILLEGAL_VALUE: {"rows": 0},
        FaultCode.UNIFIED_BUFFER_RANGE: {"rows": 1, "unified_buffer": 101},
        FaultCode.ACCUMULATOR_RANGE: {"rows": 1, "accumulator": 51},
        FaultCode.NO_TILE: {"rows": 1, "next_tile": 1},
    },
    "convolve": {
        FaultCode.UNKNOWN_OPCODE: {},
        FaultCode.RESERVED_BITS: {},
        FaultCode.ILLEGAL_VALUE: {"height": 0, "width": 1},
        FaultCode.UNIFIED_BUFFER_RANGE: {"height": 1, "width": 1, "unified_buffer": 101},
        FaultCode.ACCUMULATOR_RANGE: {"height": 1, "width": 1, "accumulator": 51},
        FaultCode.NO_TILE: {"height": 1, "width": 1, "next_tile": 1},
    },
    "read_host_memory": {
        FaultCode.UNKNOWN_OPCODE: {},
        FaultCode.RESERVED_BITS: {},
        FaultCode.ILLEGAL_VALUE: {"rows": 0},
        FaultCode.UNIFIED_BUFFER_RANGE: {"rows": 1, "unified_buffer": 101},
        FaultCode.HOST_WINDOW: {"rows": 1, "host": 0},
    },
    "read_weights": {
        FaultCode.UNKNOWN_OPCODE: {},
        FaultCode.RESERVED_BITS: {},
        FaultCode.ILLEGAL_VALUE: {"tiles": 0},
        FaultCode.WEIGHT_WINDOW: {"tiles": 1, "weights": 0},
    },
}


@given(st.data())
def test_the_lowest_code_is_reported(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from(sorted(PRIORITIES)))
    values = PRIORITIES[base]
    defects = data.draw(st.lists(st.sampled_from(sorted(values)), min_size=1, unique=True))
    # No other defects may be present: without a tile, every multiplication would have another one.
    before = [convolution_plane(1, 1)]
    if base in ("matrixmultiply", "convolve") and FaultCode.NO_TILE not in defects:
        before += [READ_WEIGHTS, NEXT_TILE]
    if base == "read_host_memory" and FaultCode.HOST_WINDOW not in defects:
        values = {code: {"host": 0x1000} | changes for code, changes in values.items()}
    if base == "read_weights" and FaultCode.WEIGHT_WINDOW not in defects:
        values = {code: {"weights": 0x4000} | changes for code, changes in values.items()}
    assert fault(*before, with_defects(defects, base, values)) is min(defects)


@pytest.mark.parametrize(
    "changes",
    [
        {"table": 1, "output": OutputFormat.WORD},
        {"operand": Operand.ADD, "output": OutputFormat.INT32},
        {"pooling": Pooling.MAX},
    ],
)
def test_modes_that_exclude_each_other_come_before_ranges(changes: dict[str, int]) -> None:
    everything = {"rows": 1, "unified_buffer": 101, "source": 51, "parameters": 10}
    assert fault(make("activate", **everything)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(make("activate", **everything, **changes)) is FaultCode.ILLEGAL_VALUE


def test_wide_weights_without_a_new_tile_come_before_ranges() -> None:
    beyond = make("matrixmultiply", rows=1, unified_buffer=101, wide_weights=1)
    assert fault(beyond) is FaultCode.ILLEGAL_VALUE


def test_a_full_queue_comes_last() -> None:
    full = [READ_WEIGHTS] * 3
    assert fault(*full, make("read_weights", tiles=0, weights=0x4000)) is FaultCode.ILLEGAL_VALUE
    assert fault(*full, make("read_weights", tiles=1, weights=0)) is FaultCode.WEIGHT_WINDOW
    assert fault(parameters(85, 10, 2)) is FaultCode.UNIFIED_BUFFER_RANGE
    assert fault(configure(Register.LOAD_TABLE, 1 << 63 | 99)) is FaultCode.ILLEGAL_VALUE
