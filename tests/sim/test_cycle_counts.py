"""The hardware takes the recorded cycles, and pairs of instructions without a conflict do not wait.

``python -m tb.directed.cycle_counts --write`` updates the record.
"""

from __future__ import annotations

import json

import pytest

from tb.directed.cycle_counts import EXPECTED, MEASUREMENTS, expected, name_of
from tb.directed.directed_cases import DIRECTED
from tb.directed.timed_programs import PLACES
from tb.lockstep.campaign import VERILATED

SMALL = pytest.mark.parametrize("config", DIRECTED, ids=name_of)


@pytest.mark.parametrize("config", VERILATED, ids=name_of)
def test_layers(config):
    assert MEASUREMENTS["layers"](config, {}) == expected(config)["layers"]


@SMALL
def test_pairs(config):
    assert MEASUREMENTS["pairs"](config, {}) == expected(config)["pairs"]


@SMALL
def test_random_programs(config):
    assert MEASUREMENTS["random"](config, {}) == expected(config)["random"]


@SMALL
def test_windows(config):
    assert MEASUREMENTS["windows"](config, {}) == expected(config)["windows"]


@SMALL
def test_unrelated_instructions(config):
    assert MEASUREMENTS["unrelated"](config, {}) == expected(config)["unrelated"]


@SMALL
def test_queues(config):
    assert MEASUREMENTS["queues"](config, {}) == expected(config)["queues"]


@SMALL
def test_long_ranges(config):
    measured = MEASUREMENTS["long ranges"](config, {})
    assert measured == expected(config)["long ranges"]
    assert all(len(set(cycles)) == 1 for cycles in measured.values())


@SMALL
def test_scrubs(config):
    measured = MEASUREMENTS["scrubs"](config, {})
    assert measured == expected(config)["scrubs"]
    assert all(measured.values()), "a scrub never comes before the second program, or never after it"


@SMALL
def test_adjacent_ranges_wait_no_longer_than_distant_ones(config):
    far = list(PLACES).index("far")
    for pairs in expected(config)["pairs"].values():
        for name, cycles in pairs.items():
            if "parameters" in name:
                continue  # eight rows overlap in all places but ``far``
            for place in ("behind", "before"):
                assert abs(cycles[list(PLACES).index(place)] - cycles[far]) <= 1, (name, place)


def test_no_other_configuration_is_recorded():
    assert json.loads(EXPECTED.read_text()).keys() == {"places", *map(name_of, VERILATED)}
