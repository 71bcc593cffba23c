"""Expected counters of a program, compared with numbers determined by hand."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.events import Counter
from openmxu.assembler import assemble
from tb.lockstep import Case, cases, configurations
from tb.lockstep.counters import Work, counter_problem, expected_work

# A row is half a host beat, and a tile is four weight beats.
CONFIG = Config(size=4, activation_lanes=1, unified_buffer_rows=256, accumulator_rows=64, weight_data_bytes=4)


def case(text: str, config: Config = CONFIG) -> Case:
    memories = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    return Case(config, tuple(assemble(text)), *memories, 0)


def counts(text: str, config: Config = CONFIG) -> dict[str, int]:
    """The counters that are not 0 after the first call of ``execute``."""
    return {counter.name: count for counter, count in expected_work(case(text, config))[0].exact.items() if count}


def test_every_unit_retires_its_instructions():
    text = """
        set_configuration register=CONVOLUTION_PLANE, height=1, width=1
        set_configuration register=LOAD_PARAMETERS, count=1
        set_configuration register=LOAD_TABLE
        read_weights tiles=1
        convolve next_tile, height=1, width=1
        matrixmultiply rows=1
        activate rows=1
        synchronize
        nop
        debug_tag
        halt
    """
    retired = {name: count for name, count in counts(text).items() if name.startswith("RETIRED")}
    assert retired == {"RETIRED_READ_WEIGHTS": 1, "RETIRED_MATRIX": 2, "RETIRED_ACTIVATION": 3, "RETIRED_OTHER": 5}


@pytest.mark.parametrize(
    ("flags", "passes"), [("", 1), ("wide_input, ", 2), ("wide_weights, ", 2), ("wide_input, wide_weights, ", 4)]
)
def test_every_pass_counts_its_rows(flags, passes):
    multiply = f"read_weights tiles=2\nmatrixmultiply next_tile, {flags}rows=7\nhalt"
    assert counts(multiply)["ARRAY_ACTIVE"] == 7 * passes
    plane = "set_configuration register=CONVOLUTION_PLANE, height=2, width=2\nread_weights tiles=2\n"
    convolve = f"{plane}convolve next_tile, {flags}height=3, width=5, dy=-100\nhalt"
    assert counts(convolve)["ARRAY_ACTIVE"] == 15 * passes


@pytest.mark.parametrize(
    ("text", "beats"),
    [
        ("host_memory rows=4, host=8", 2),
        ("host_memory rows=4, host=4", 3),
        ("host_memory rows=1, host=4", 1),
        ("host_memory_alternate rows=4, host=4", 4),
    ],
)
def test_bytes_are_those_of_whole_beats(text, beats):
    assert counts(f"read_{text}\nhalt")["HOST_READ_BYTES"] == 8 * beats
    assert counts(f"write_{text}\nhalt")["HOST_WRITE_BYTES"] == 8 * beats


def test_bytes_of_rows_longer_than_a_beat():
    config = Config(size=16, activation_lanes=4)
    assert counts("read_host_memory rows=3\nhalt", config)["HOST_READ_BYTES"] == 48
    assert counts("read_host_memory_alternate rows=3\nhalt", config)["HOST_READ_BYTES"] == 48


def test_weight_bytes_are_known_for_tiles_that_are_taken():
    (work,) = expected_work(case("read_weights tiles=3\nmatrixmultiply next_tile, wide_weights, rows=1\nhalt"))
    assert (work.exact[Counter.WEIGHT_BYTES], work.most_weight_bytes) == (2 * 16, 3 * 16)
    beats_wider_than_a_tile = Config(size=2, activation_lanes=1, weight_data_bytes=64)
    assert (
        counts("read_weights tiles=1\nmatrixmultiply next_tile, rows=1\nhalt", beats_wider_than_a_tile)["WEIGHT_BYTES"]
        == 64
    )


def test_work_adds_up_over_calls_and_stops_at_a_fault():
    first, second = expected_work(
        case(
            "read_weights tiles=1\nmatrixmultiply next_tile, rows=3\n.word 0xff\nmatrixmultiply rows=9\nhalt\nnop\nhalt"
        )
    )
    assert (first.exact[Counter.ARRAY_ACTIVE], first.exact[Counter.RETIRED_OTHER]) == (3, 0)
    assert (second.exact[Counter.ARRAY_ACTIVE], second.exact[Counter.RETIRED_OTHER]) == (3, 2)


def test_every_call_has_expected_work():
    for random in cases(1, 20, configurations(4)):
        assert len(expected_work(random)) == len(random.executions())


WORK = Work({Counter.ARRAY_ACTIVE: 20, Counter.WEIGHT_BYTES: 64, Counter.RETIRED_OTHER: 2}, most_weight_bytes=128)
RIGHT = dict.fromkeys(Counter, 0) | {
    Counter.CYCLES: 100,
    Counter.ARRAY_ACTIVE: 20,
    Counter.WEIGHT_STALL: 5,
    Counter.WEIGHT_SHIFT: 5,
    Counter.NON_MATRIX: 70,
    Counter.RAW_STALL: 70,
    Counter.INPUT_STALL: 30,
    Counter.MATRIX_BUSY: 100,
    Counter.WEIGHT_BYTES: 64,
    Counter.RETIRED_OTHER: 2,
}


def test_correct_counters_are_accepted():
    assert counter_problem(RIGHT, WORK) == ""
    assert counter_problem(RIGHT | {Counter.WEIGHT_BYTES: 128}, WORK) == ""


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({Counter.CYCLES: 101}, "101 cycles are not the sum of {'array_active': 20, "),
        ({Counter.ARRAY_ACTIVE: 19, Counter.NON_MATRIX: 71}, "array_active is 19 instead of 20"),
        ({Counter.RETIRED_OTHER: 3}, "retired_other is 3 instead of 2"),
        ({Counter.WEIGHT_BYTES: 63}, "weight_bytes is 63 instead of 64 to 128"),
        ({Counter.WEIGHT_BYTES: 129}, "weight_bytes is 129 instead of 64 to 128"),
        ({Counter.RAW_STALL: 71}, "raw_stall is 71, more than non_matrix, 70"),
        ({Counter.HOST_READ_BUSY: 101}, "host_read_busy is 101, more than cycles, 100"),
        ({Counter.MATRIX_BUSY: 19}, "array_active is 20, more than matrix_busy, 19"),
    ],
)
def test_wrong_counters_are_reported(changes, problem):
    assert counter_problem(RIGHT | changes, WORK).startswith(problem)
