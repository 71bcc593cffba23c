"""Functional coverage: bins, and the bins that short programs hit."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.assembler import assemble
from tb.lockstep import Case, cases, configurations
from tb.lockstep.coverage import Coverage, declare, observe
from tb.lockstep.programs.environment import LATENCIES, STALL_KINDS, STREAMS, environment

CONFIG = Config(
    size=4,
    activation_lanes=2,
    unified_buffer_rows=128,
    accumulator_rows=64,
    parameter_sets=4,
    weight_fifo_tiles=4,
    weight_queue_depth=8,
)
ALL = [config for size in (2, 4, 8, 16) for config in configurations(size)]


def case(text: str, config: Config = CONFIG) -> Case:
    return Case(config, tuple(assemble(text)), np.zeros(1024, np.uint8), np.zeros(256, np.uint8), 0)


def hit(text: str, group: str, config: Config = CONFIG) -> set[str]:
    """The bins of a group that a program, with a Halt added, hits."""
    hits = observe(case(f"{text}\nhalt", config))
    declare([config]).add(hits)
    return {name for found, name in hits if found == group}


# --- Bins ---


@pytest.fixture
def coverage() -> Coverage:
    coverage = Coverage({"fruit": ["apple", "pear"], "roots": ["beet"]})
    coverage.add({("fruit", "pear"): 2})
    coverage.add({("fruit", "pear"): 1, ("roots", "beet"): 1})
    return coverage


def test_hits_add_up(coverage):
    assert coverage.groups == ("fruit", "roots")
    assert coverage.hits("fruit") == {"apple": 0, "pear": 3}
    assert coverage.unreached() == [("fruit", "apple")]
    assert coverage.summary() == "coverage: 2 of 3 bins in 2 groups reached"
    assert json.loads(coverage.as_json()) == {"fruit": {"apple": 0, "pear": 3}, "roots": {"beet": 1}}


def test_the_report_names_what_was_not_reached(coverage):
    text = coverage.as_markdown("Report")
    assert text.startswith("# Report\n\ncoverage: 2 of 3 bins in 2 groups reached\n")
    assert "| fruit | 2 | 1 | 0 |\n| roots | 1 | 1 | 1 |\n" in text
    assert "## Not reached\n\n- fruit: apple\n" in text
    assert "| pear | 3 |" in text
    coverage.add({("fruit", "apple"): 1})
    assert "## Not reached\n\nNone.\n" in coverage.as_markdown("Report")


@pytest.mark.parametrize("unknown", [("fruit", "plum"), ("trees", "oak")])
def test_what_is_not_declared_cannot_be_hit(coverage, unknown):
    with pytest.raises(KeyError, match=unknown[1]):
        coverage.add({unknown: 1})


# --- Hazards ---

RESULT = "Activate's result"
SOURCE = "Activate's source"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "read_host_memory rows=4\nwrite_host_memory unified_buffer=3, rows=1, host=100",
            {"unified buffer: read after write: Read_Host_Memory, then Write_Host_Memory"},
        ),
        (
            "write_host_memory rows=4\nread_host_memory rows=1, host=100",
            {"unified buffer: write after read: Write_Host_Memory, then Read_Host_Memory"},
        ),
        (
            "read_host_memory rows=9, host=64\nactivate rows=2, unified_buffer=1, output=INT32",
            {f"unified buffer: write after write: Read_Host_Memory, then {RESULT} of 32 bits"},
        ),
        (
            "activate rows=3, output=WORD\nset_configuration register=SOURCE_FORMAT, wide\n"
            "activate rows=3, source=5, unified_buffer=20, from_unified_buffer",
            {f"unified buffer: read after write: {RESULT} of 16 bits, then {SOURCE} of 16 bits"},
        ),
        (
            "activate rows=2\nset_configuration register=OPERAND_ADDRESS, unified_buffer=1\n"
            "activate rows=1, unified_buffer=20, operand=ADD",
            {f"unified buffer: read after write: {RESULT}, then Activate's operand"},
        ),
        (
            "read_weights tiles=1\nmatrixmultiply next_tile, rows=4, accumulator=4\nactivate rows=1, source=7, "
            "unified_buffer=100",
            {f"accumulators: read after write: MatrixMultiply, then {SOURCE}"},
        ),
        (
            "set_configuration register=CONVOLUTION_PLANE, height=1, width=1\nread_weights tiles=1\n"
            "activate rows=9, unified_buffer=100\nconvolve next_tile, height=3, width=3",
            {f"accumulators: write after read: {SOURCE}, then Convolve"},
        ),
        (
            "read_weights tiles=1\nmatrixmultiply next_tile, rows=4\nmatrixmultiply accumulate, rows=1",
            {
                "accumulators: read after write: MatrixMultiply, then MatrixMultiply",
                "accumulators: write after write: MatrixMultiply, then MatrixMultiply",
            },
        ),
        (
            "write_host_memory rows=2, host=64\nread_host_memory unified_buffer=50, rows=1, host=68",
            {"host memory: read after write: Write_Host_Memory, then Read_Host_Memory"},
        ),
        (
            "set_configuration register=LOAD_PARAMETERS, unified_buffer=50, first=1, count=2\n"
            "activate rows=1, parameters=2",
            {"parameters: read after write: LOAD_PARAMETERS, then Activate"},
        ),
        (
            "activate rows=1, table\nset_configuration register=LOAD_TABLE, unified_buffer=60",
            {"tables: write after read: Activate, then LOAD_TABLE"},
        ),
        ("write_host_memory rows=4\nwrite_host_memory rows=4, host=100", set()),
    ],
)
def test_hazards(text, expected):
    assert hit(text, "hazards") == expected


READ, WRITE = "read_host_memory rows=4", "write_host_memory rows=4, host=100"
READ_THEN_WRITE = {"unified buffer: read after write: Read_Host_Memory, then Write_Host_Memory"}


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("", READ_THEN_WRITE),
        ("nop\n" * 7, READ_THEN_WRITE),
        ("nop\n" * 8, set()),
        ("synchronize units=0b11110\ndebug_tag", READ_THEN_WRITE),
        ("synchronize units=1", set()),
        ("host_synchronize", set()),
        ("interrupt_host", set()),
        ("halt", set()),
        ("read_host_memory unified_buffer=90, rows=1\n" * 3, READ_THEN_WRITE),
        # The queue of the unit holds four instructions, so the first one has left it when the fifth one enters.
        ("read_host_memory unified_buffer=90, rows=1\n" * 4, set()),
    ],
)
def test_hazards_are_between_instructions_that_may_be_in_flight_together(between, expected):
    assert hit(f"{READ}\n{between}\n{WRITE}", "hazards") & READ_THEN_WRITE == expected


def test_faulting_and_dropped_instructions_have_no_hazards():
    assert hit(f"{READ}\n.word 0xff\n{WRITE}", "hazards") == set()
    assert hit(f"{READ}\n.word 0xff\nnop\nhalt\n{WRITE}", "hazards") == set()


def test_ranges_that_touch_do_not_overlap():
    read = "read_host_memory unified_buffer=10, rows=4"
    for unified_buffer in (6, 14):
        text = f"{read}\nwrite_host_memory unified_buffer={unified_buffer}, rows=4, host=900"
        assert hit(text, "ranges that touch") == READ_THEN_WRITE
        assert hit(text, "hazards") == set()
    assert (
        hit("read_host_memory rows=4\nwrite_host_memory unified_buffer=5, rows=4, host=900", "ranges that touch")
        == set()
    )


def test_a_register_written_between_two_users():
    group = "registers written between two users"
    use, write = "activate rows=1", "set_configuration register=OUTPUT_FORMAT, maximum=9"
    assert hit(f"{use}\n{write}\n{use}, unified_buffer=9", group) == {"OUTPUT_FORMAT"}
    assert hit(f"{use}\n{use}, unified_buffer=9\n{write}", group) == set()
    assert hit(f"{use}, output=INT32\n{write}\n{use}", group) == set()
    assert hit(f"{use}\nset_configuration register=INPUT_FORMAT\n{use}", group) == set()


def test_hazards_are_crossed_with_the_stalls_of_the_environment():
    (name,) = hit(f"{READ}\n{WRITE}", "hazards × stalls")
    assert name == f"{next(iter(READ_THEN_WRITE))}, {environment(0).stalls}"


# --- Modes ---


@pytest.mark.parametrize(
    ("text", "group", "expected"),
    [
        (
            "read_weights tiles=2\nmatrixmultiply next_tile, wide_weights, wide_input, rows=3\n"
            "matrixmultiply accumulate, rows=1",
            "multiplications",
            {
                "MatrixMultiply, overwrites, next, 16 inputs, 16 weights",
                "MatrixMultiply, accumulates, same, 8 inputs, 8 weights",
            },
        ),
        ("activate rows=1, table", "Activate", {"accumulators, rows, no operand, BYTE by table"}),
        (
            "set_configuration register=SOURCE_FORMAT, wide\n"
            "set_configuration register=OPERAND_ADDRESS, unified_buffer=9\n"
            "set_configuration register=POOLING_WINDOW, height=1, width=1\n"
            "set_configuration register=POOLING_PLANE, height=1, width=1, output_width=1\n"
            "activate rows=1, unified_buffer=50, from_unified_buffer, pooling=AVERAGE, operand=MULTIPLY, output=INT32",
            "Activate",
            {"16-bit words, sum, multiply by bytes, INT32"},
        ),
        ("activate rows=2", "rows", {"2 or 3 of Activate"}),
        (
            "set_configuration register=OPERAND_FORMAT, signed, wide, zero_point=-32768\n"
            "set_configuration register=WEIGHT_FORMAT, wide\n"
            "set_configuration register=OPERAND_SCALE, scale=0xff800000\n"
            "set_configuration register=OUTPUT_FORMAT, minimum=3, maximum=2",
            "number formats",
            {
                "OPERAND_FORMAT int16, zero point lowest",
                "WEIGHT_FORMAT 16-bit",
                "OPERAND_SCALE infinity",
                "OPERAND_SCALE negative",
                "OUTPUT_FORMAT crossed",
            },
        ),
        ("synchronize units=31\nsynchronize\nsynchronize units=8", "Synchronize", {"all", "none", "MATRIX"}),
    ],
)
def test_modes(text, group, expected):
    assert hit(text, group) == expected


# --- Geometry ---


def test_ends_of_memories():
    text = (
        "read_host_memory unified_buffer=120, rows=8, host=992\nset_configuration register=LOAD_PARAMETERS, first=3, "
        "count=1\nread_weights tiles=1, weights=240\nmatrixmultiply next_tile, unified_buffer=4, accumulator=4, rows=60"
    )
    assert hit(text, "ends of memories") == {
        "unified buffer, last: Read_Host_Memory",
        "host memory, last: Read_Host_Memory",
        "unified buffer, first: LOAD_PARAMETERS",
        "parameters, last: LOAD_PARAMETERS",
        "weight memory, last: Read_Weights",
        "accumulators, last: MatrixMultiply",
    }


def sides(names: Iterable[str]) -> set[str]:
    return {name.split("outside ")[1] for name in names if "outside " in name}


@pytest.mark.parametrize(
    ("dy", "dx", "expected"),
    [
        (0, 0, set()),
        (-1, 0, {"above"}),
        (1, 0, {"below"}),
        (0, -1, {"on the left"}),
        (-1, 1, {"above", "on the right"}),
    ],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_sides_of_a_convolution(dy, dx, expected, stride):
    side = 1 + 2 * stride  # three outputs cover the plane
    plane = f"height={side}, width={side}, stride_y={stride}, stride_x={stride}"
    text = f"set_configuration register=CONVOLUTION_PLANE, {plane}\nread_weights tiles=1\n"
    names = hit(f"{text}convolve next_tile, height=3, width=3, dy={dy}, dx={dx}", "convolutions")
    assert sides(names) == expected
    assert ("8 inputs all inside" in names) == (not expected)


def pooled(window: str, plane: str, rows: int) -> set[str]:
    names = hit(
        f"set_configuration register=POOLING_WINDOW, {window}\nset_configuration register=POOLING_PLANE, {plane}\n"
        f"activate rows={rows}, pooling=MAX",
        "pooling",
    )
    return {name.removeprefix("maximum: ") for name in names}


def test_windows_of_pooling():
    assert pooled("height=2, width=2, stride_y=2, stride_x=2", "height=4, width=4, output_width=2", 4) == {
        "windows apart"
    }
    assert pooled("height=3, width=4", "height=3, width=4, output_width=1", 1) == {"the whole plane", "stride 0"}
    assert pooled("height=2, width=2, stride_y=1, stride_x=1, pad_top=1", "height=4, width=4, output_width=3", 5) == {
        "windows that overlap",
        "outside above",
        "a last row that is not full",
    }
    assert pooled(
        "height=5, width=5, stride_y=9, stride_x=9, pad_left=255", "height=4, width=4, output_width=2", 2
    ) == {
        "a window larger than the plane",
        "an empty window",
        "outside below",
        "outside on the left",
        "padding of 255",
        "windows apart",
    }


def test_host_strides():
    config = CONFIG.replace(size=8, host_data_bytes=4)
    for stride, name in {0: "0", 4: "less than a row", 8: "a row", 12: "more than a row"}.items():
        text = f"set_configuration register=HOST_STRIDE, stride={stride}\nwrite_host_memory_alternate rows=2"
        assert hit(text, "host strides", config) == {f"write: {name}"}


# --- Tiles and faults ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read_weights tiles=5\nread_weights tiles=1", {"more tiles than the FIFO holds", "tiles are left at Halt"}),
        ("read_weights tiles=1\n" * 8, {"the queue is full", "tiles are left at Halt"}),
        ("read_weights tiles=1\n.word 0xff", {"tiles are left at a fault"}),
        (
            "set_configuration register=WEIGHT_FORMAT, wide\nread_weights tiles=2\n"
            "matrixmultiply next_tile, wide_weights, rows=1\nmatrixmultiply rows=1",
            {"a 16-bit pair of one Read_Weights", "the queue is emptied", "a high tile is used again after its pair"},
        ),
        (
            "set_configuration register=WEIGHT_FORMAT, wide\nread_weights tiles=3\n"
            "matrixmultiply next_tile, rows=1\nmatrixmultiply next_tile, wide_weights, rows=1",
            {
                "a low tile of 16-bit weights alone",
                "a 16-bit pair that begins with a high tile",
                "the queue is emptied",
            },
        ),
        (
            "read_weights tiles=1\nread_weights tiles=1\nset_configuration register=WEIGHT_FORMAT, wide\n"
            "matrixmultiply next_tile, wide_weights, rows=1",
            {
                "a 16-bit pair of two Read_Weights",
                "WEIGHT_FORMAT is changed before the tile is taken",
                "the queue is emptied",
            },
        ),
    ],
)
def test_tiles(text, expected):
    assert hit(text, "tiles") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".word 0xff", "UNKNOWN_OPCODE of a word"),
        (".word 0x0800", "RESERVED_BITS of Nop"),
        ("activate rows=1, output=15", "UNIMPLEMENTED of Activate"),
        ("set_configuration register=99", "ILLEGAL_VALUE of an unknown register"),
        ("set_configuration register=LOAD_TABLE, unified_buffer=65", "UNIFIED_BUFFER_RANGE of LOAD_TABLE"),
        ("activate rows=1, from_unified_buffer", "UNIFIED_BUFFER_OVERLAP of Activate"),
    ],
)
def test_faults(text, expected):
    assert hit(text, "faults") == {expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "read_host_memory rows=1\nread_weights tiles=1\nnop\n.word 0xff",
            {"HOST_READ at a fault", "WEIGHT at a fault"},
        ),
        ("activate rows=1\nsynchronize", {"ACTIVATION at Synchronize"}),
        ("write_host_memory rows=1\ninterrupt_host\nhost_synchronize", {"HOST_WRITE at Interrupt_Host"}),
        ("read_host_memory rows=1\nnop\nnop\nnop", {"HOST_READ at Halt"}),
        ("read_host_memory rows=1\nnop\nnop\nnop\nnop", set()),
    ],
)
def test_units_at_work_when_an_instruction_waits(text, expected):
    assert hit(text, "work under way") == expected


# --- Environments and whole campaigns ---


def test_environments_depend_on_the_seed_and_cover_every_kind():
    surroundings = [environment(seed) for seed in range(300)]
    assert surroundings == [environment(seed) for seed in range(300)]
    assert {each.stalls for each in surroundings} == set(STALL_KINDS)
    assert {each.latency for each in surroundings} == set(LATENCIES)
    alone = {each.streams for each in surroundings if each.stalls == "one stream"}
    assert alone == {(stream,) for stream in STREAMS}
    assert {each.probability for each in surroundings if each.stalls == "none"} == {0.0}
    assert {each.probability for each in surroundings if each.stalls == "30 %"} == {0.3}


def test_bins_that_no_configuration_reaches_are_not_declared():
    without_table = [configurations(2)[1]]
    names = [name for group in declare(without_table).groups for name in declare(without_table).hits(group)]
    assert not any(
        "LOAD_TABLE" in name for name in names if "UNIFIED_BUFFER_RANGE" not in name and "ILLEGAL" not in name
    )
    assert "registers written" in declare(ALL).groups
    assert "LOAD_TABLE" in declare(ALL).hits("registers written")


def test_random_programs_reach_nearly_every_bin():
    coverage = declare(ALL)
    for random in cases(1, 150, ALL):
        coverage.add(observe(random))
    total = sum(len(coverage.hits(group)) for group in coverage.groups)
    assert total > 2000
    assert len(coverage.unreached()) < total // 8
