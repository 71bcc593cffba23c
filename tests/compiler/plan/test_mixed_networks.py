"""Tensors of bytes and of int16 side by side in the unified buffer: programs compute what networks are defined as."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.compiler import compile_network, evaluate
from tests.compiler.models.mixed_networks import inputs_of, mixed_network

CONFIGS = {
    "tiny": openmxu.Config.preset("tiny"),
    "rings": openmxu.Config(size=4, activation_lanes=1, unified_buffer_rows=192, accumulator_rows=32),
    "small": openmxu.Config(size=8, unified_buffer_rows=384),
    "two ports": openmxu.Config.for_size(8, profile="full", weight_data_bytes=8),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_random_networks(name: str) -> None:
    config = CONFIGS[name]
    with openmxu.open_device("interpreter", config) as device:
        for seed in range(12):
            random = np.random.default_rng((seed, len(name)))
            network, batch = mixed_network(random), int(random.choice([1, 2, 5, 17, 40]))
            inputs = inputs_of(network, random, batch)
            expected = evaluate(network, inputs)
            results = compile_network(network, config, batch, effort=0).run(device, inputs)
            if not isinstance(expected, dict):
                expected = {network.outputs[0].host.name: expected}
            for output, array in expected.items():
                np.testing.assert_array_equal(results[output], array, str(seed))
