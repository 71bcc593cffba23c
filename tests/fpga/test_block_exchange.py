"""Blocks exchange their sites where logic may move with them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.fpga.ecp5 import wire_energy
from scripts.fpga.ecp5.block_exchange import exchanged
from scripts.fpga.ecp5.wire_energy import WireEnergy, position


def placed(x, y, *, drives=(), reads=(), kind="FF"):
    """A cell at a place, with the bits that it drives and reads."""
    return {
        "type": kind,
        "attributes": {"NEXTPNR_BEL": f"X{x}/Y{y}/Q"},
        "port_directions": {"Q": "output", "D": "input", "CLK": "input"},
        "connections": {"Q": [*drives], "D": [*reads], "CLK": [0]},
    }


def module(cells, netnames=None):
    return {"cells": {**cells, "clock": placed(500, 500, drives=[0])}, "netnames": netnames or {}}


@pytest.mark.parametrize("register_at", [(10, 10), (90, 10)])
def test_blocks_that_share_a_register_come_near_each_other(register_at):
    """The register is no reason to stay, wherever it was put: it moves with them."""
    cells = {
        "first": placed(10, 10, reads=[1], kind="RAM"),
        "second": placed(90, 10, reads=[1, 2], kind="RAM"),
        "shared": placed(*register_at, drives=[1]),
        "pin": placed(80, 10, drives=[2], kind="TRELLIS_IO"),
    }
    energy = WireEnergy(module(cells), ["first", "second"], {})
    assert set(exchanged(energy, ["X10/Y10/R", "X90/Y10/R"], ["X80/Y10/R"])) == {"X80/Y10/R", "X90/Y10/R"}


def test_blocks_come_near_those_that_keep_their_site():
    """And that is the site which these have now, wherever the first placement had put them."""
    cells = {"kept": placed(90, 90, drives=[1], kind="RAM"), "other": placed(50, 50, reads=[1], kind="RAM")}
    energy = WireEnergy(module(cells), ["other"], {"kept": "X10/Y10/R"})
    assert exchanged(energy, ["X90/Y90/R"], ["X20/Y20/R", "X30/Y30/R"]) == ["X20/Y20/R"]


def test_constants_and_nets_with_many_readers_attract_no_block():
    cells = {
        "it": placed(50, 50, reads=[1, 2, 3], kind="RAM"),
        "near": placed(20, 20, drives=[1]),
        "zero": placed(10, 10, drives=[2], kind="TRELLIS_IO"),
        "reset": placed(10, 10, drives=[3], kind="TRELLIS_IO"),
        **{f"reader_{number}": placed(10, 10, reads=[3]) for number in range(40)},
    }
    energy = WireEnergy(module(cells, {"$PACKER_GND_NET": {"bits": [2]}}), ["it"], {})
    assert exchanged(energy, ["X10/Y10/R"], ["X20/Y20/R"]) == ["X20/Y20/R"]


@given(st.data())
def test_the_sum_is_that_of_all_wires_with_other_cells_in_their_best_places(data):
    """Against a minimum that numpy finds from all wires at the same time."""
    count = data.draw(st.integers(2, 6))
    spots = st.tuples(st.integers(0, 30), st.integers(0, 30))
    names = [*(f"cell_{number}" for number in range(count)), "block_0", "block_1"]
    bits = range(1, count + 3)
    reads = [data.draw(st.sampled_from(bits)) for _ in bits]
    places = [data.draw(spots) for _ in bits]
    cells = {
        name: placed(*at, drives=[bit], reads=[read])
        for name, at, bit, read in zip(names, places, bits, reads, strict=True)
    }
    energy = WireEnergy(module(cells), ["block_0", "block_1"], {})

    def least(blocks):
        """The squares of all wires' lengths, and of the cells' ways from their first places."""
        hold = np.sqrt(wire_energy._HOLD)
        rows, right = [*(hold * np.eye(count))], [hold * np.array(at) for at in places[:count]]
        for reader, read in enumerate(reads):
            row, end, weight = np.zeros(count), np.zeros(2), np.sqrt(1 / reads.count(read))
            for cell, sign in ((read - 1, weight), (reader, -weight)):
                if cell < count:
                    row[cell] += sign
                else:
                    end -= sign * blocks[cell - count]
            rows.append(row)
            right.append(end)
        best = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
        return np.sum((rows @ best - right) ** 2)

    def of_energy(blocks):
        return np.sum(blocks * (energy.stiffness @ blocks)) + 2 * np.sum(blocks * energy.pull)

    one, other = (np.array([data.draw(spots), data.draw(spots)], float) for _ in range(2))
    assert of_energy(one) - of_energy(other) == pytest.approx(least(one) - least(other), rel=1e-2, abs=0.5)


class _Springs:
    """Blocks between which there are wires, and a place that draws each."""

    def __init__(self, rng, count):
        wires = rng.random((count, count)) * (rng.random((count, count)) < 0.4)
        wires = np.triu(wires, 1) + np.triu(wires, 1).T
        self.stiffness = np.diag(wires.sum(axis=1) + 0.1) - wires
        self.pull = -0.1 * rng.integers(0, 50, (count, 2))

    def slope(self, places):
        return 2 * (self.stiffness @ places + self.pull)

    def total(self, sites):
        places = np.array([position(site) for site in sites], float)
        return np.sum(places * (self.stiffness @ places)) + 2 * np.sum(places * self.pull)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 3))
def test_no_exchange_is_left_that_saves_anything(seed, count, spare):
    rng = np.random.default_rng(seed)
    energy = _Springs(rng, count)
    sites = [f"X{x}/Y{y}/R" for x, y in rng.permutation(list(np.ndindex(8, 8)))[: count + spare]]
    found = exchanged(energy, sites[:count], sites[count:])
    assert len(set(found)) == count
    assert set(found) <= set(sites)
    least = energy.total(found)
    assert least <= energy.total(sites[:count]) + 1e-6
    for one, other in itertools.combinations(range(count), 2):
        swapped = list(found)
        swapped[one], swapped[other] = found[other], found[one]
        assert energy.total(swapped) > least - 1e-5
    for one, free in itertools.product(range(count), set(sites) - set(found)):
        assert energy.total([*found[:one], free, *found[one + 1 :]]) > least - 1e-5
