"""Models compared with ONNX Runtime and with the float model, layer by layer."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import openmxu
from openmxu.comparison import Comparison, compare, compare_layers
from openmxu.compiler.ir.operations import Convolution
from scripts.random_models import make_model, reference
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.quantizer.float_models import FloatModel

CONFIG = openmxu.Config.for_size(4)


def network(batch: int | str = "batch") -> FloatModel:
    return FloatModel((3, 6, 6), batch=batch).conv(3, 5, 3).add("Relu").add("Flatten").dense(80, 7)


def compared(model: FloatModel, count: int, labels: np.ndarray | None = None) -> Comparison:
    quantized = openmxu.quantize(model.model(), model.inputs(8))
    program = openmxu.compile(quantized, CONFIG)
    with openmxu.open_device("interpreter", CONFIG) as device:
        return compare(quantized, program, device, model.inputs(count), labels=labels, float_model=model.model())


def test_equal_model() -> None:
    result = compared(network(), 20)
    assert (result.elements, result.outputs, result.differing, result.largest) == (20, 140, 0, 0)
    assert [layer.kind for layer in result.layers] == ["Conv", "Gemm"]
    assert [layer.outputs for layer in result.layers] == [16 * 80, 16 * 7]
    assert (result.first, result.reason, result.accuracy) == (None, "", {})


def test_accuracies() -> None:
    model = network()
    quantized = openmxu.quantize(model.model(), model.inputs(8))
    program, inputs = openmxu.compile(quantized, CONFIG), model.inputs(50)
    labels = reference(quantized, inputs).argmax(axis=1)
    labels[:10] = (labels[:10] + 1) % 7
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = compare(quantized, program, device, inputs, labels=labels, float_model=model.model())
    floats = reference(model.model(), inputs).argmax(axis=1)
    assert result.accuracy == {"float": (floats == labels).mean(), "onnxruntime": 0.8, "device": 0.8}


def test_signal_to_noise() -> None:
    model = network()
    quantized, inputs = openmxu.quantize(model.model(), model.inputs(8)), model.inputs(5)
    last = compare_layers(quantized, {"x": inputs}, model.model())[-1]
    signal = reference(model.model(), inputs).astype(np.float64)
    noise = signal - reference(quantized, inputs)
    assert last.sqnr == pytest.approx(10 * math.log10((signal**2).sum() / (noise**2).sum()), abs=1e-3)
    assert 20 < last.sqnr < 60
    assert all(layer.sqnr is None for layer in compare_layers(quantized, {"x": inputs}))


def test_wrong_layer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = Convolution.compute
    monkeypatch.setattr(Convolution, "compute", lambda *given: sums(*given) ^ 1)
    result = compared(network(), 3)
    assert result.first is result.layers[0]
    assert result.first.differing > 0
    assert "defect of openmxu" in result.first.reason


def test_difference_between_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    run = openmxu.Program.run
    monkeypatch.setattr(openmxu.Program, "run", lambda *given: {name: array + 2 for name, array in run(*given).items()})
    result = compared(network(), 3)
    assert (result.differing, result.largest) == (21, pytest.approx(2))
    assert (result.first, result.reason[:25]) == (None, "no layer alone differs: i")


def test_ambiguous_layer() -> None:
    layer = compared(network(), 1).layers[0]
    assert dataclasses.replace(layer, ambiguous=1).reason.startswith("ONNX Runtime's results")


def test_fixed_batch() -> None:
    assert compared(network(batch=4), 8).differing == 0
    with pytest.raises(openmxu.InputError, match="a batch of 4, and 6 inputs are no multiple of it"):
        compared(network(batch=4), 6)


@pytest.mark.parametrize("labels", [np.zeros(3, np.float32), np.zeros(4, np.int64), np.zeros((3, 1), np.int64)])
def test_labels_that_do_not_fit(labels: np.ndarray) -> None:
    with pytest.raises(openmxu.InputError, match=r"labels must be integers of shape 3, not .* of shape \("):
        compared(network(), 3, labels)


def test_batch_within_other_dimensions() -> None:
    """Layers have no batch of their own to be computed for."""
    model = FloatModel((4, 6), batch=1)
    model.add("Reshape", model.constant(np.array([-1, 6]))).dense(6, 5)
    assert compared(model, 1).layers is None


def test_layers_of_int16_are_one_apart_where_float32_rounds() -> None:
    random = np.random.default_rng(0)
    constants = {
        "w": random.integers(-127, 128, (64, 48)).astype(np.int8),
        "w_scale": np.float32(0.011),
        "w_zero_point": np.int8(0),
        "x_scale": np.float32(0.00013),
        "x_zero_point": np.int16(0),
        "y_scale": np.float32(0.0011),
        "y_zero_point": np.int16(0),
        "bias": np.ones(48, np.float32),
    }
    nodes = [dequantize("x"), dequantize("w"), node("Gemm", "x_real w_real bias", "s"), quantize("s", "y", "y")]
    model = make_model(nodes, constants, [("x", "int16", (64,))], ("y", "int16", (48,)))
    inputs = random.integers(-32768, 32768, (400, 64)).astype(np.int16)
    (layer,) = compare_layers(model, {"x": inputs})
    assert 0 < layer.differing < layer.outputs // 100
    assert layer.reason.startswith("ONNX Runtime computes layers of int16 in float32")
    assert "defect" in dataclasses.replace(layer, is_rounded=False).reason
