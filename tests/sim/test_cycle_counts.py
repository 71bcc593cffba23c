"""The hardware takes the recorded cycles, and pairs of instructions without a conflict do not wait.

``python -m tb.directed.cycle_counts --write`` updates the record.
"""

from __future__ import annotations

import json

import pytest

from openmxu.arch.events import Counter
from tb.directed.cycle_counts import EXPECTED, MEASUREMENTS, expected, name_of
from tb.directed.directed_cases import DIRECTED
from tb.directed.timed_programs import PLACES
from tb.lockstep import generate, outcome
from tb.lockstep.campaign import VERILATED, verilated_device

SMALL = pytest.mark.parametrize("config", DIRECTED, ids=name_of)


@pytest.mark.parametrize("config", VERILATED, ids=name_of)
def test_layers(config):
    assert MEASUREMENTS["layers"](config, {}) == expected(config)["layers"]


@SMALL
@pytest.mark.parametrize("name", [name for name in MEASUREMENTS if name != "layers"])
def test_small_programs(config, name):
    assert MEASUREMENTS[name](config, {}) == expected(config)[name]


@SMALL
def test_scrubs_come_before_and_after_the_second_program(config):
    assert all(expected(config)["scrubs"].values())


@SMALL
def test_the_distance_in_a_long_range_does_not_matter(config):
    assert all(len(set(cycles)) == 1 for cycles in expected(config)["long ranges"].values())


@SMALL
def test_adjacent_ranges_wait_no_longer_than_distant_ones(config):
    far = list(PLACES).index("far")
    for pairs in expected(config)["pairs"].values():
        for name, cycles in pairs.items():
            if "parameters" in name:
                continue  # eight rows overlap in all places but ``far``
            for place in ("behind", "before"):
                assert abs(cycles[list(PLACES).index(place)] - cycles[far]) <= 1, (name, place)


def test_a_model_with_a_waveform_takes_the_same_cycles(tmp_path):
    # With a waveform the array is no loop, no unit sleeps, and the reset has no register.
    case = generate(DIRECTED[0], 902, 10)
    counted = []
    for waveform in (None, tmp_path / "wave.vcd"):
        with verilated_device(case, waveform=waveform) as device:
            host, weights = case.host_memory.copy(), case.weight_memory.copy()
            for program in case.executions():
                outcome(device, program, host, weights)
            counted.append({counter: device.counters[counter] for counter in Counter})
    assert counted[0] == counted[1]


def test_no_other_configuration_is_recorded():
    assert json.loads(EXPECTED.read_text()).keys() == {"places", *map(name_of, VERILATED)}
