"""Of the ways to begin and to end a program, the fastest one is taken."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import compile_network, evaluate, gemm_input
from openmxu.compiler.benchmark import gemm_network
from openmxu.compiler.plan import ramp
from openmxu.compiler.plan.fusion_groups import plan_groups
from openmxu.sim.cycle_model import predict
from openmxu.sim.interpreter import Interpreter

SHAPES = [(100, 100, 100), (64, 16, 128), (16, 128, 16)]


@pytest.mark.parametrize("shape", SHAPES)
def test_never_slower_and_as_exact(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config.for_size(16)
    network = gemm_network(*shape)
    found = compile_network(network, config)
    monkeypatch.setattr(ramp, "_BUDGET", 0)
    first = compile_network(network, config)
    assert predict(found.instructions, config).cycles < predict(first.instructions, config).cycles
    inputs = gemm_input(*shape[:2])
    result = found.run(Interpreter(config), inputs)
    np.testing.assert_array_equal(result["y"], evaluate(network, inputs))


def test_output_tiles_share_the_readings_of_a_ring() -> None:
    config = Config.for_size(16)
    (group,) = plan_groups(gemm_network(256, 2048, 64), 256, 16, config)
    assert group.together > 1
    assert group.rings["a"] < 2048 // 16
    assert 2 * group.together * len(group.strips[0].images) <= config.accumulator_rows
