"""Programs for cores of the lite profile: the digits network equals ONNX Runtime, and other models are refused."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.arch.faults import FaultCode
from openmxu.arch.legality import LegalityChecker
from openmxu.compiler import ProfileError, compile_network
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from tests.compiler.models.graphs import constants, model, node
from tests.compiler.models.small_networks import residual_block

LITE = openmxu.Config.preset("icebreaker")


@pytest.mark.parametrize(
    "config",
    [LITE, openmxu.Config(profile="lite", weight_queue_depth=1)],
    ids=["icebreaker", "default sizes"],
)
@pytest.mark.parametrize("batch", [1, 37, 360])
def test_digits_equal_onnx_runtime(config: openmxu.Config, batch: int) -> None:
    images, _ = digits_test_split()
    program = openmxu.compile(DIGITS_MODEL, config, batch=batch)
    checker = LegalityChecker(config)
    assert {checker.check(instruction) for instruction in program.instructions} == {FaultCode.NONE}
    with openmxu.open_device("interpreter", config) as device:
        logits = program.run(device, images[:batch])["logits"]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {"image": images[:batch]})
    assert (logits != expected).sum() == 0


def test_a_convolution_is_refused() -> None:
    network = residual_block()
    compile_network(network, LITE.replace(profile="standard"), 1)
    with pytest.raises(ProfileError) as refused:
        compile_network(network, LITE, 1)
    first = network.operations[0]
    assert str(refused.value).startswith(f"layer {first.name!r} needs ")
    assert str(refused.value).endswith("which a core of the lite profile does not have; the standard profile has it")
    assert "\n" not in str(refused.value)


def test_int32_sums_are_refused() -> None:
    nodes = [node("MatMulInteger", "x w x_zero_point w_zero_point", "y")]
    proto = model(nodes, constants(np.random.default_rng(0)), ("uint8", "int32"))
    openmxu.compile(proto, LITE.replace(profile="standard"))
    with pytest.raises(ProfileError, match="needs Activate with `output`, which a core of the lite profile"):
        openmxu.compile(proto, LITE)
