"""Quantized recurrent networks: close to the float model, and represented as the compiler's documentation specifies."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import openmxu
from openmxu.compiler.recurrent.scales import DEFAULTS
from tests.quantizer.recurrent_float_models import RecurrentFloatModel

CONFIG = openmxu.Config.for_size(8)
CALIBRATION, TEST = 60, 40
TOLERANCE = 0.03
"""Maximum difference of probabilities; with random weights, small differences of states have large effects."""

MODELS = {
    "lstm": RecurrentFloatModel("LSTM"),
    "lstm of words": RecurrentFloatModel("LSTM", words=True),
    "gru": RecurrentFloatModel("GRU"),
    "gru, linear before reset": RecurrentFloatModel("GRU", linear_before_reset=1),
    "gru, reverse": RecurrentFloatModel("GRU", direction="reverse"),
    "gru with states": RecurrentFloatModel("GRU", states=True, linear_before_reset=1),
}


def _quantized(model: RecurrentFloatModel, **options: object) -> onnx.ModelProto:
    return openmxu.quantize(model.model(), model.values(CALIBRATION, seed=1), **options)


def _reference(model: RecurrentFloatModel, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.model().SerializeToString(), providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, values), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_close_to_the_float_model(name: str):
    model, values = MODELS[name], MODELS[name].values(TEST)
    program = openmxu.compile(_quantized(model), CONFIG, batch=TEST)
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, values)
    reference = _reference(model, values)
    assert results.keys() == reference.keys()
    for output, array in reference.items():
        assert results[output].shape == array.shape
        assert np.abs(results[output] - array).max() < TOLERANCE
        assert np.ptp(array, axis=1 if output == "end1" else 0).min() > 3 * TOLERANCE


@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_representation(activations: str):
    """Products of W and R mean the same in each row, hidden states keep their scale, and the metadata is complete."""
    graph = _quantized(MODELS["lstm"], activations=activations).graph
    constants = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    for name in ("first", "second"):
        cell = next(node for node in graph.node if node.name == name)
        metadata = {entry.key.removeprefix("openmxu."): float(entry.value) for entry in cell.metadata_props}
        assert metadata.keys() == DEFAULTS["LSTM"].keys()
        x, w, r = (makers[cell.input[index]] for index in range(3))
        assert {item.op_type for item in (x, w, r)} == {"DequantizeLinear"}
        assert constants[w.input[0]].dtype == constants[r.input[0]].dtype == np.int8
        assert np.abs(constants[w.input[0]]).max() <= 127
        products = constants[x.input[1]] * constants[w.input[1]], metadata["hidden"] * constants[r.input[1]]
        assert np.allclose(*products, rtol=1e-5)
        assert constants[x.input[2]].dtype == (activations if name == "first" else np.int8)
    first = next(node for node in graph.node if node.name == "first")
    hidden = next(float(entry.value) for entry in first.metadata_props if entry.key == "openmxu.hidden")
    assert np.isclose(constants[makers[cell.input[0]].input[1]], hidden, rtol=1e-6)


def test_scores_stay_real():
    """Softmax and what it reads are the host's, in float32."""
    graph = _quantized(MODELS["gru"]).graph
    makers = {name: node for node in graph.node for name in node.output}
    softmax = makers["probabilities"]
    assert (softmax.op_type, makers[softmax.input[0]].op_type) == ("Softmax", "Gemm")


def test_float_model_is_not_changed():
    model = MODELS["lstm"].model()
    before = model.SerializeToString()
    openmxu.quantize(model, MODELS["lstm"].values(8))
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"direction": "bidirectional"}, "the direction must be forward or reverse, not bidirectional"),
        ({"clip": 2.0}, "clip is not supported"),
    ],
)
def test_nodes_that_are_refused(attributes: dict[str, object], reason: str):
    model = RecurrentFloatModel("GRU", **attributes)
    if "direction" in attributes:
        model = _bidirectional()
    with pytest.raises(openmxu.UnsupportedOperatorError, match=reason):
        openmxu.quantize(model.model() if isinstance(model, RecurrentFloatModel) else model, _values(8))


def _values(count: int) -> dict[str, np.ndarray]:
    return RecurrentFloatModel("GRU").values(count)


def _bidirectional() -> onnx.ModelProto:
    """One node with two directions."""
    shape = RecurrentFloatModel
    rows = 3 * shape.units
    random = np.random.default_rng(0)
    arrays = {
        "W": random.normal(size=(2, rows, shape.inputs)).astype(np.float32),
        "R": random.normal(size=(2, rows, shape.units)).astype(np.float32),
    }
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=[1, 0, 2]),
        onnx.helper.make_node(
            "GRU", ["turned", "W", "R"], ["", "y"], name="both", hidden_size=shape.units, direction="bidirectional"
        ),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "both",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", shape.length, shape.inputs])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, "batch", shape.units])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def test_weights_that_are_not_constants():
    model = RecurrentFloatModel("GRU").model()
    weights = next(item for item in model.graph.initializer if item.name == "W1")
    model.graph.initializer.remove(weights)
    shape = list(weights.dims)
    model.graph.input.append(onnx.helper.make_tensor_value_info("W1", onnx.TensorProto.FLOAT, ["batch", *shape[1:]]))
    values = {**_values(1), "W1": numpy_helper.to_array(weights)}
    with pytest.raises(openmxu.ModelError, match=r"node 'first' \(GRU\): W must be a constant"):
        openmxu.quantize(model, values)
