"""Recurrent cells: results of the compiled program equal the integers of their definition."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.compiler import CapacityError, compile_network, evaluate
from tests.compiler.models.random_cells import KINDS, cell_network, random_cell

TINY = openmxu.Config.preset("tiny")

# Inputs, units, steps, batch: more and fewer than a tile, odd and even numbers of steps.
SHAPES = ((3, 5, 4, 2), (6, 4, 1, 1), (9, 13, 5, 7), (1, 2, 3, 20))


def differences(network, config, values, batch):
    expected = evaluate(network, values)
    if not isinstance(expected, dict):
        expected = {network.outputs[0].host.name: expected}
    program = compile_network(network, config, batch)
    with openmxu.open_device("interpreter", config) as device:
        results = program.run(device, values)
    assert results.keys() == expected.keys()
    return {name: int((results[name] != expected[name]).sum()) for name in expected}


def random_values(random, network, batch):
    source = network.inputs[0].host
    limits = np.iinfo(source.dtype)
    return random.integers(limits.min, limits.max + 1, (batch, *source.shape)).astype(source.dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_interpreter_equals_definition(kind, shape):
    inputs, units, length, batch = shape
    random = np.random.default_rng(SHAPES.index(shape))
    network = cell_network(random_cell(random, kind, inputs, units), inputs, length)
    values = random_values(random, network, batch)
    assert differences(network, TINY, values, batch) == {"y": 0, "y_h": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_parts_take_turns(kind):
    """A batch with enough rows is divided in two; the last execution is incomplete."""
    random = np.random.default_rng(5)
    config = openmxu.Config.for_size(8, accumulator_rows=512)
    network = cell_network(random_cell(random, kind, 5, 20), 5, 4)
    assert differences(network, config, random_values(random, network, 50), 41) == {"y": 0, "y_h": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_too_large_goes_through_in_strips(kind):
    random = np.random.default_rng(6)
    network = cell_network(random_cell(random, kind, 5, 9), 5, 3)
    assert differences(network, TINY, random_values(random, network, 23), 23) == {"y": 0, "y_h": 0}


@pytest.mark.parametrize("wanted", ["y", "y_h"])
def test_unused_outputs_are_not_written(wanted):
    random = np.random.default_rng(7)
    cell = random_cell(random, "lstm", 3, 4, sequence=wanted == "y", final=wanted == "y_h")
    network = cell_network(cell, 3, 6)
    assert differences(network, TINY, random_values(random, network, 2), 2) == {wanted: 0}
    rows = 6 * 2 if wanted == "y" else 2
    program = compile_network(network, TINY, 2)
    writes = [item for item in program.instructions if item.format.name.startswith("Write_Host")]
    assert sum(item["rows"] for item in writes) == rows


def test_a_cell_that_does_not_fit_is_an_error():
    random = np.random.default_rng(8)
    network = cell_network(random_cell(random, "lstm", 5, 40), 5, 3)
    with pytest.raises(
        CapacityError, match=r"node 'cell': unified_buffer_rows is 256, but one batch element needs \d+"
    ):
        compile_network(network, TINY.replace(unified_buffer_rows=256), 1)
    with pytest.raises(CapacityError, match="node 'cell': accumulator_rows is 4, but it needs at least 8"):
        compile_network(network, TINY.replace(accumulator_rows=4), 1)


def test_cells_use_the_range_of_their_tables():
    """The random cells are not trivial: their hidden states take most of the possible values."""
    random = np.random.default_rng(9)
    for kind in KINDS:
        network = cell_network(random_cell(random, kind, 8, 32), 8, 10)
        hidden = evaluate(network, random_values(random, network, 20))["y"]
        assert np.unique(hidden).size > 150
