"""Multiplier blocks that share factors are near each other."""

import numpy as np
import pytest

from scripts.fpga.ecp5.block_groups import assign_places, groups_of


def block(**connections):
    return {"type": "MULT18X18D", "connections": {name: [bit] for name, bit in connections.items()}}


def test_blocks_that_share_factors_are_a_group():
    cells = {
        "low_low": block(A0=1, A1=2, B0=5, CLK0=9),
        "other": block(A0=7, B0="0", P0=1, CLK0=9),
        "high_high": block(A0=3, B0=6, CLK0=9),
        "alone": block(A0=8, B0="0", CLK0=9),
        "high_low": block(A0=3, B17=5, CLK0=9),
        "another": block(A0=10, B3=7, CLK0=9),
        "low_high": block(A0=1, B0=6, CLK0=9),
    }
    assert groups_of(cells, list(cells)) == [[0, 2, 4, 6], [1, 5]]


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_close_together(seed):
    """Logic has every block anywhere; groups of four take little more than four neighbouring places each."""
    random = np.random.default_rng(seed)
    places = np.array([(9 * index, 0) for index in range(16)])
    wanted = random.integers(0, 150, 16)
    costs = np.abs(places[:, 0] - wanted[:, None]).astype(float) ** 2
    groups = [list(members) for members in random.permutation(16).reshape(4, 4)]

    def widths(chosen):
        return [int(np.ptp(places[chosen[members], 0])) for members in groups]

    apart, together = assign_places(costs, places, []), assign_places(costs, places, groups)
    assert sorted(apart) == sorted(together) == list(range(16))
    assert np.mean(widths(apart)) > 60
    assert np.mean(widths(together)) < 45


def test_blocks_without_a_group_go_where_they_cost_least():
    costs = np.array([[1.0, 5, 9], [2, 4, 1]])
    assert assign_places(costs, np.array([(0, 0), (5, 5), (9, 9)]), []).tolist() == [0, 2]
