"""Programs of networks on planes compute what the networks define, however small the machine."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import CapacityError, compile_network
from tests.compiler.plane_networks import differing_planes, random_planes


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_on_random_machines(seed: int) -> None:
    """Tensors that stay in the unified buffer, in groups, image by image, in rows, or hardly a window of them."""
    random = np.random.default_rng(seed)
    size = int(random.choice([2, 4, 8, 16]))
    config = Config.for_size(
        size,
        unified_buffer_rows=int(random.choice([512, 1024, 8192])),
        accumulator_rows=int(random.choice([16, 30, 128, 1024])),
        parameter_sets=int(random.choice([1, 2, 3, 16, 64])),
        weight_queue_depth=int(random.choice([1, 2, 8])),
        command_queue_depth=int(random.choice([2, 4, 8])),
    )
    shape = tuple(int(value) for value in (random.integers(1, 14), random.integers(1, 14), random.integers(1, 10)))
    network = random_planes(random, shape, operations=int(random.integers(1, 6)))
    assert differing_planes(network, config, random, batch=int(random.integers(1, 5))) == 0
