"""Operators that the device does not support are computed by the host, with the results of ONNX Runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import openmxu
from openmxu import InputError, Program
from openmxu.device import Device
from openmxu.exact_session import exact_session
from tests.compiler.models.host_models import MODELS, TOKENS, WORDS, embedding, host_model, layer, random_inputs

CONFIG = openmxu.Config(size=4, activation_lanes=1)


@pytest.fixture
def device():
    with openmxu.open_device("interpreter", CONFIG) as opened:
        yield opened


def expected(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = exact_session(model.SerializeToString())
    return dict(zip([item.name for item in model.graph.output], session.run(None, inputs), strict=True))


def assert_same(results: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert list(results) == list(wanted)
    for name, array in wanted.items():
        assert (results[name].dtype, results[name].shape) == (array.dtype, array.shape)
        if array.dtype == np.float32:
            np.testing.assert_allclose(results[name], array, rtol=1e-5, atol=1e-6)
        else:
            assert (results[name] == array).all()


@pytest.mark.parametrize("name", MODELS)
def test_same_as_onnx_runtime(device: Device, name: str) -> None:
    inputs = random_inputs(MODELS[name], 3)
    assert_same(openmxu.compile(MODELS[name], CONFIG, batch=2).run(device, inputs), expected(MODELS[name], inputs))


def test_parts_of_host_and_device() -> None:
    program = openmxu.compile(MODELS["embedding"], CONFIG)
    first, device, last = program.segments
    assert first.nodes == ("words (Gather)", "scaled (Mul)")
    assert last.nodes == ("y (Softmax)", "best (ArgMax)")
    assert [(spec.name, spec.dtype, spec.shape) for spec in program.inputs] == [("tokens", "int64", (TOKENS,))]
    assert [tensor.name for tensor in device.inputs] == ["q"]
    assert [tensor.name for tensor in device.outputs] == ["h"]


def test_supported_operators_run_on_the_device() -> None:
    nodes = layer("x", "y")
    program = openmxu.compile(host_model(nodes, [("x", "float32", (6,))], [("y", "float32", (4,))]), CONFIG)
    assert program.host_segments == ()


@pytest.mark.parametrize("opset", [13, 17, 23, onnx.defs.onnx_opset_version()])
def test_operator_versions(device: Device, opset: int) -> None:
    inputs = random_inputs(MODELS["embedding"], 2)
    result = openmxu.compile(embedding(opset), CONFIG).run(device, inputs)
    assert_same(result, expected(MODELS["embedding"], inputs))


@pytest.mark.parametrize("batch", [0, 1, 3, 7])
def test_fixed_batch_of_the_model(device: Device, batch: int) -> None:
    """The host's part processes three elements at a time."""
    program = openmxu.compile(MODELS["fixed batch"], CONFIG)
    assert program.segments[0].batch == 3
    inputs = random_inputs(MODELS["preprocessing"], batch)
    assert_same(program.run(device, inputs), expected(MODELS["preprocessing"], inputs))


@pytest.mark.parametrize("name", MODELS)
def test_without_onnx_runtime(device: Device, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    inputs = random_inputs(MODELS[name], 3)
    wanted = expected(MODELS[name], inputs)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert_same(openmxu.compile(MODELS[name], CONFIG).run(device, inputs), wanted)


@pytest.mark.parametrize("name", MODELS)
def test_file_round_trip(device: Device, tmp_path: Path, name: str) -> None:
    inputs = random_inputs(MODELS[name], 3)
    saved = openmxu.compile(MODELS[name], CONFIG, batch=3)
    saved.save(tmp_path / "model.mxu")
    loaded = Program.load(tmp_path / "model.mxu")
    for field in ("inputs", "outputs", "segments"):
        assert getattr(loaded, field) == getattr(saved, field)
    assert_same(loaded.run(device, inputs), expected(MODELS[name], inputs))


def test_value_that_the_host_cannot_use(device: Device) -> None:
    program = openmxu.compile(MODELS["embedding"], CONFIG)
    with pytest.raises(InputError, match=r"the host's part of the model \(words \(Gather\), .* failed: ") as caught:
        program.run(device, np.full((1, TOKENS), WORDS, np.int64))
    assert "\n" not in str(caught.value)


def test_wrong_type(device: Device) -> None:
    with pytest.raises(InputError, match=r"input 'tokens' must be int64 of shape \(batch, 5\), not float32"):
        openmxu.compile(MODELS["embedding"], CONFIG).run(device, np.zeros((1, TOKENS), np.float32))
