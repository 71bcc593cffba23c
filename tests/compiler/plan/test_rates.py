"""Programs planned for memories of some rates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import compile_network, gemm_input, gemm_network
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles
from openmxu.compiler.target import Target
from openmxu.sim.cycle_model import predict
from openmxu.sim.interpreter import Interpreter
from tests.compiler.models.small_networks import residual_block

CONFIG = Config(size=4, activation_lanes=1, unified_buffer_rows=8192, accumulator_rows=256)


def test_a_beat_in_every_cycle_where_there_is_no_rate():
    config = Config(size=16, host_data_bytes=4, weight_data_bytes=8)
    target = Target.of(config)
    assert (row_cycles(config), fetch_cycles(config)) == (4, 32)
    assert (target.row_cycles, target.fetch_cycles, target.config) == (4, 32, config)


@pytest.mark.parametrize(
    ("host", "weights", "row", "tile"), [(3, 5, 6, 52), (Fraction(1, 2), 8, 32, 32), (99, 99, 4, 32)]
)
def test_cycles_of_a_row_and_of_a_tile(host, weights, row, tile):
    """Whole beats, rounded up at the end; a rate above the port's width is none."""
    target = Target.of(Config(size=16, host_data_bytes=4, weight_data_bytes=8), host, weights)
    assert (row_cycles(target), fetch_cycles(target)) == (row, tile)


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        ({"host_rate": 0.5}, TypeError, "host_rate must be an int or a Fraction, not 0.5"),
        ({"weight_rate": 0}, ValueError, "weight_rate must be positive, not 0"),
    ],
)
def test_wrong_rates(rates, error, message):
    with pytest.raises(error, match=message):
        compile_network(gemm_network(4, 4, 4), CONFIG, effort=0, **rates)


def test_a_target_is_the_core_and_its_rates():
    target = Target.of(CONFIG, 3, 5)
    assert Target.of(target.config, 3, 5) == target != Target.of(CONFIG)
    assert target.replace(size=8, activation_lanes=2).host_rate == 3
    program = compile_network(gemm_network(4, 4, 4), CONFIG, effort=0, host_rate=3)
    assert type(program.config) is Config
    assert program.config == CONFIG


def test_planned_for_slow_memories():
    """Faster with these than the program for fast ones, and as exact."""
    network, rates = residual_block(), {"host_rate": 1, "weight_rate": 1}
    slow, fast = (compile_network(network, CONFIG, 8, effort=0, **own) for own in (rates, {}))
    cycles, most = (predict(program.instructions, CONFIG, **rates).cycles for program in (slow, fast))
    assert cycles < 0.95 * most
    (spec,) = slow.inputs
    inputs = {spec.name: np.random.default_rng(0).integers(0, 100, (8, *spec.shape)).astype(spec.dtype)}
    one, other = (program.run(Interpreter(CONFIG), inputs) for program in (slow, fast))
    for name, expected in other.items():
        np.testing.assert_array_equal(one[name], expected)


def test_the_search_counts_with_the_rates():
    network, rates = gemm_network(40, 24, 12), {"host_rate": Fraction(1, 2), "weight_rate": Fraction(1, 2)}
    found, other = (compile_network(network, CONFIG, **own) for own in (rates, {}))
    cycles, most = (predict(program.instructions, CONFIG, **rates).cycles for program in (found, other))
    assert cycles < most
    inputs = gemm_input(40, 24)
    results = [program.run(Interpreter(CONFIG), inputs)["y"] for program in (found, other)]
    np.testing.assert_array_equal(*results)
