"""``openmxu.quantize``."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import openmxu
from openmxu import InputError, ModelError
from openmxu.exact_session import exact_session
from scripts.random_models import reference
from tests.quantizer.float_models import FloatModel


def small_network(**options: object) -> FloatModel:
    """Convolution, normalization, pooling and a matrix product, with operators for the host around them."""
    model = FloatModel((3, 12, 12), **options)
    model.normalize(3).conv(3, 8, 3, pads=[1, 1, 1, 1]).normalize(8).add("Relu")
    model.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).normalize(8).conv(8, 6, 3).add("Relu")
    return model.add("Flatten").dense(96, 10)


def computing(model: onnx.ModelProto) -> list[str]:
    """The operators of a model, without QuantizeLinear and DequantizeLinear."""
    return [node.op_type for node in model.graph.node if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]


def constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Constants by name."""
    return {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}


def float_outputs(model: onnx.ModelProto, inputs: np.ndarray) -> np.ndarray:
    """The outputs of a float model, computed by ONNX Runtime."""
    session = exact_session(model.SerializeToString())
    return session.run(None, {"x": inputs})[0]


@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_quantized_network_is_near_the_float_network(activations):
    network = small_network()
    quantized = openmxu.quantize(network.model(), network.inputs(64), activations=activations)
    inputs = network.inputs(50)
    expected, outputs = float_outputs(network.model(), inputs), reference(quantized, inputs)
    error = np.abs(outputs - expected).mean() / np.abs(expected).mean()
    assert 0 < error < 0.05
    assert (outputs.argmax(axis=1) == expected.argmax(axis=1)).mean() >= 0.9


@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_types_and_scales(activations):
    network = small_network()
    quantized = openmxu.quantize(network.model(), network.inputs(32), activations=activations)
    values = constants(quantized)
    weights = {name: array for name, array in values.items() if array.dtype == np.int8 and array.ndim > 1}
    assert sorted(array.shape for array in weights.values()) == [(6, 8, 3, 3), (8, 1, 1, 1), (8, 3, 3, 3), (10, 96)]
    for name, array in weights.items():
        assert values[name.replace("_quantized", "_scale")].shape == array.shape[:1]
    types = {values[node.input[2]].dtype for node in quantized.graph.node if node.op_type == "QuantizeLinear"}
    assert types == {np.dtype(activations)}


def test_shared_bias_beside_tensors_of_the_names_made_up_for_its_other_users():
    """Convolutions share the bias ``b``, and outputs are called ``b0`` and ``b1``."""
    network = FloatModel((3, 6, 6), seed=4)
    kernels = [network.constant(network.random.normal(size=(3, 3, 1, 1))) for _ in range(3)]
    bias = network.constant(10 * network.random.normal(size=3))
    for kernel in kernels:
        network.add("Conv", kernel, bias).add("Relu")
    model = network.model()
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [{bias: "b", "t1": "b0", "t3": "b1"}.get(name, name) for name in names]
    next(item for item in model.graph.initializer if item.name == bias).name = "b"
    inputs = network.inputs(32)
    quantized = openmxu.quantize(model, inputs)
    expected, outputs = float_outputs(model, inputs), reference(quantized, inputs)
    assert np.abs(outputs - expected).max() < 0.05 * np.abs(expected).max()


def test_normalizations_fold_into_convolutions():
    model = openmxu.quantize(small_network().model(), small_network().inputs(32))
    assert computing(model) == ["BatchNormalization", "Conv", "MaxPool", "Conv", "Conv", "Flatten", "Gemm"]


def test_weights_of_a_normalization_use_their_whole_range():
    network = FloatModel((4, 5, 5)).add("Relu").normalize(4).add("Relu")
    quantized = openmxu.quantize(network.model(), network.inputs(32))
    (weights,) = (array for array in constants(quantized).values() if array.dtype == np.int8 and array.ndim == 4)
    assert weights.shape == (4, 1, 1, 1)
    assert set(np.abs(weights.reshape(-1))) == {127}


def test_classification_stays_on_the_host():
    network = small_network().add("Softmax")
    quantized = openmxu.quantize(network.model(), network.inputs(32))
    last, before = quantized.graph.node[-1], quantized.graph.node[-2]
    assert (last.op_type, before.op_type) == ("Softmax", "DequantizeLinear")


def test_classification_within_the_network_is_quantized():
    network = FloatModel((6,)).dense(6, 8).add("Softmax").dense(8, 3)
    quantized = openmxu.quantize(network.model(), network.inputs(32))
    follower = quantized.graph.node[computing_index(quantized, "Softmax") + 1]
    assert follower.op_type == "QuantizeLinear"


def computing_index(model: onnx.ModelProto, operator: str) -> int:
    """The index of the only node with an operator."""
    (index,) = (index for index, node in enumerate(model.graph.node) if node.op_type == operator)
    return index


@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_device_computes_what_onnx_runtime_computes(activations):
    network = FloatModel((3, 12, 12)).conv(3, 8, 3, pads=[1, 1, 1, 1]).normalize(8).add("Relu")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).normalize(8).conv(8, 6, 3).add("Relu")
    network.add("Flatten").dense(96, 10)
    quantized = openmxu.quantize(network.model(), network.inputs(64), activations=activations)
    inputs = network.inputs(20)
    config = openmxu.Config.for_size(8)
    program = openmxu.compile(quantized, config, batch=10)
    with openmxu.open_device("interpreter", config) as device:
        (outputs,) = program.run(device, inputs).values()
    expected = reference(quantized, inputs)
    np.testing.assert_array_equal(outputs, expected)
    assert len(np.unique(expected)) > 30


@pytest.mark.parametrize("shape", [(4,), (1, 4), (1,), (1, 1), ()])
@pytest.mark.parametrize("operators", ["Gemm", "MatMul and Add"])
def test_biases_of_every_shape(operators, shape):
    """scikit-learn's exporter writes (1, N), which ONNX Runtime's quantizer does not take."""
    network = FloatModel((6,))
    for inputs, outputs in ((6, 4), (4, 4)):
        weights, bias = network.random.normal(size=(inputs, outputs)), network.random.normal(size=shape)
        if operators == "Gemm":
            network.add("Gemm", network.constant(weights), network.constant(bias))
        else:
            network.add("MatMul", network.constant(weights)).add("Add", network.constant(bias))
        network.add("Relu")
    quantized = openmxu.quantize(network.model(), network.inputs(32))
    inputs = network.inputs(20)
    config = openmxu.Config.preset("tiny")
    program = openmxu.compile(quantized, config, batch=5)
    with openmxu.open_device("interpreter", config) as device:
        (outputs,) = program.run(device, inputs).values()
    np.testing.assert_array_equal(outputs, reference(quantized, inputs))
    assert len(np.unique(outputs)) > 30


def test_open_dimensions_become_those_of_the_calibration_data():
    network = FloatModel((3, 12, 12)).conv(3, 8, 3).add("Relu").conv(8, 4, 3)
    model = network.model()
    for tensor, names in ((model.graph.input[0], ("height", "width")), (model.graph.output[0], ("h", "w"))):
        for dim, name in zip(tensor.type.tensor_type.shape.dim[2:], names, strict=True):
            dim.dim_param = name
    quantized = openmxu.quantize(model, network.inputs(32))
    assert [dim.dim_value for dim in quantized.graph.input[0].type.tensor_type.shape.dim] == [0, 3, 12, 12]
    inputs, config = network.inputs(6), openmxu.Config.preset("tiny")
    with openmxu.open_device("interpreter", config) as device:
        (outputs,) = openmxu.compile(quantized, config, batch=3).run(device, inputs).values()
    np.testing.assert_array_equal(outputs, reference(quantized, inputs))


def test_path_bytes_and_model_are_the_same(tmp_path):
    network = FloatModel((5,)).dense(5, 3)
    model, inputs = network.model(), network.inputs(16)
    path = tmp_path / "float.onnx"
    onnx.save(model, path)
    before = model.SerializeToString(deterministic=True)
    results = [openmxu.quantize(source, inputs) for source in (path, str(path), path.read_bytes(), model)]
    assert len({result.SerializeToString(deterministic=True) for result in results}) == 1
    assert model.SerializeToString(deterministic=True) == before
    assert [item.name for item in tmp_path.iterdir()] == ["float.onnx"]


def test_nodes_may_be_unnamed():
    network = FloatModel((5,)).dense(5, 4).add("Relu").dense(4, 3).add("Softmax")
    model = network.model()
    for node in model.graph.node:
        node.name = ""
    quantized = openmxu.quantize(model, network.inputs(16))
    assert computing(quantized) == ["Gemm", "Gemm", "Softmax"]
    assert quantized.graph.node[-2].op_type == "DequantizeLinear"


def test_fixed_batch():
    network = FloatModel((5,), batch=4).dense(5, 3)
    assert computing(openmxu.quantize(network.model(), network.inputs(16))) == ["Gemm"]
    with pytest.raises(InputError, match="must have a multiple of the model's batch of 4 elements, not 15"):
        openmxu.quantize(network.model(), network.inputs(15))


def test_old_models_are_converted():
    network = FloatModel((5,), opset=11).dense(5, 3)
    quantized = openmxu.quantize(network.model(), network.inputs(16))
    assert [(entry.domain, entry.version) for entry in quantized.opset_import] == [("", 17)]


def test_nothing_is_printed(capfd):
    network = small_network()
    openmxu.quantize(network.model(), network.inputs(16))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((4, 6), np.float32), r"'x' must be float32 of shape \(batch, 5\), not float32 of shape \(4, 6\)"),
        (np.zeros((4, 5)), r"'x' must be float32 of shape \(batch, 5\), not float64 of shape \(4, 5\)"),
        (np.zeros((0, 5), np.float32), "must have some elements, not 0"),
        (np.full((4, 5), np.nan, np.float32), "'x' must be finite"),
        ({"y": np.zeros((4, 5), np.float32)}, "calibration data is for y, but the inputs are x"),
        ({}, "calibration data is for nothing, but the inputs are x"),
    ],
)
def test_calibration_data_that_does_not_fit(data, message):
    with pytest.raises(InputError, match=message):
        openmxu.quantize(FloatModel((5,)).dense(5, 3).model(), data)


def test_models_that_cannot_be_quantized(tmp_path):
    network = FloatModel((5,)).dense(5, 3)
    inputs = network.inputs(16)
    with pytest.raises(ModelError, match="is no ONNX model, or truncated"):
        openmxu.quantize(network.model().SerializeToString()[:100], inputs)
    with pytest.raises(ModelError, match="the model is quantized already"):
        openmxu.quantize(openmxu.quantize(network.model(), inputs), inputs)
    with pytest.raises(ModelError, match="no operator that ONNX Runtime quantizes"):
        openmxu.quantize(FloatModel((5,)).add("Cos").model(), inputs)
    with pytest.raises(ModelError, match="the model is not valid ONNX"):
        openmxu.quantize(unconnected_model(), inputs)
    with pytest.raises(ModelError, match=r"types or shapes contradict each other: .*Gemm"):
        openmxu.quantize(mismatched_model(), inputs)
    with pytest.raises(FileNotFoundError):
        openmxu.quantize(tmp_path / "missing.onnx", inputs)


def unconnected_model() -> onnx.ModelProto:
    """A model with a node that reads an undefined value."""
    model = FloatModel((5,)).dense(5, 3).model()
    model.graph.node[0].input[0] = "missing"
    return model


def mismatched_model() -> onnx.ModelProto:
    """A model whose second product expects fewer columns than the first one has."""
    model = FloatModel((5,)).dense(5, 4).model()
    model.graph.node.append(onnx.helper.make_node("Gemm", ["t0", "c0"], ["t1"]))
    model.graph.output[0].name = "t1"
    return model


def test_unknown_type_of_activations():
    network = FloatModel((5,)).dense(5, 3)
    with pytest.raises(ValueError, match="activations must be one of uint8, int8, not 'int16'"):
        openmxu.quantize(network.model(), network.inputs(4), activations="int16")


def test_without_onnx_runtime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'openmxu\[demo\]'"):
        openmxu.quantize(FloatModel((5,)).dense(5, 3).model(), np.zeros((4, 5), np.float32))
