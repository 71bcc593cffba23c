"""Networks of products of two activations: the device has the integers of the definition."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.arch.events import Counter
from openmxu.compiler import compile_network, evaluate
from openmxu.compiler.errors import CapacityError
from openmxu.sim.cycle_model import predict
from tests.compiler.tensor_products.models import Heads, inputs

CONFIG = openmxu.Config.for_size(8, profile="full")
HEADS = [
    Heads(1, 8, 8, 8, False),
    Heads(1, 1, 16, 24, True),
    Heads(3, 17, 8, 17, True),
    Heads(3, 17, 17, 8, False),
    Heads(2, 30, 40, 16, False),
    Heads(4, 5, 32, 64, True),
]


def case(heads: Heads) -> str:
    kind = " transposed" if heads.transposed else ""
    return f"{heads.heads} times {heads.rows} x {heads.inner} x {heads.columns}{kind}"


@pytest.mark.parametrize("heads", HEADS, ids=case)
@pytest.mark.parametrize("batch", [1, 3])
def test_interpreter_equals_definition(heads: Heads, batch: int) -> None:
    random = np.random.default_rng(heads.rows * batch)
    if heads.heads > 1 and (heads.inner % 8 or heads.columns % 8):
        # Matrices side by side have planes of their own.
        heads = Heads(1, heads.rows, heads.inner, heads.columns, heads.transposed)
    network = heads.network(random)
    values = inputs(network, batch, random)
    program = compile_network(network, CONFIG, batch)
    with openmxu.open_device("interpreter", CONFIG) as device:
        assert np.array_equal(program.run(device, values)["y"], evaluate(network, values))
    assert program.multiply_adds == batch * heads.heads * heads.rows * heads.inner * heads.columns


def test_more_rows_than_accumulators() -> None:
    config = CONFIG.replace(accumulator_rows=32)
    random = np.random.default_rng(1)
    network = Heads(2, 50, 16, 8, True).network(random)
    values = inputs(network, 2, random)
    with openmxu.open_device("interpreter", config) as device:
        results = compile_network(network, config, 2).run(device, values)["y"]
    assert np.array_equal(results, evaluate(network, values))


@pytest.mark.parametrize(
    "changes",
    [{"weight_fifo_tiles": 2}, {"weight_queue_depth": 1}, {"command_queue_depth": 2}, {"unified_buffer_rows": 320}],
    ids=str,
)
def test_small_queues(changes: dict[str, int]) -> None:
    config = CONFIG.replace(**changes)
    random = np.random.default_rng(2)
    network = Heads(2, 20, 16, 24, True).network(random)
    values = inputs(network, 3, random)
    with openmxu.open_device("interpreter", config) as device:
        results = compile_network(network, config, 3).run(device, values)["y"]
    assert np.array_equal(results, evaluate(network, values))


def test_other_profiles_are_told_what_is_missing() -> None:
    with pytest.raises(CapacityError, match="need Load_Weights, which a core of the standard profile does not have"):
        compile_network(HEADS[0].network(np.random.default_rng(0)), CONFIG.replace(profile="standard"), 1)


def test_matrices_that_share_planes_are_refused() -> None:
    with pytest.raises(CapacityError, match="its matrices of 12 columns share planes of 8 channels"):
        compile_network(Heads(2, 8, 12, 8, True).network(np.random.default_rng(0)), CONFIG, 1)


def test_no_room_is_told() -> None:
    config = CONFIG.replace(unified_buffer_rows=128)
    with pytest.raises(CapacityError, match="node 'product': unified_buffer_rows is 128, but it needs at least"):
        compile_network(Heads(2, 200, 16, 8, True).network(np.random.default_rng(0)), config, 1)


@pytest.mark.build
def test_rtl_equals_definition() -> None:
    config = openmxu.Config.preset("tiny", profile="full")
    random = np.random.default_rng(4)
    network = Heads(2, 9, 8, 12, True).network(random)
    values = inputs(network, 2, random)
    program = compile_network(network, config, 2)
    with openmxu.open_device("verilator", config) as device:
        assert np.array_equal(program.run(device, values)["y"], evaluate(network, values))
        cycles = device.counters[Counter.CYCLES]
    assert abs(predict(program.instructions, config).cycles - cycles) <= 2
