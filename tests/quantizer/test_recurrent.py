"""Quantized recurrent networks: close to the float model, and represented as the compiler's documentation specifies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import openmxu
from openmxu.compiler.recurrent.scales import DEFAULTS
from openmxu.compiler.recurrent.support import GATES
from openmxu.exact_session import exact_session
from openmxu.quantizer.directions import split_directions
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
    session = exact_session(model.model().SerializeToString())
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


def test_a_cell_that_stays_real():
    """What the device does not support is left to the host, and the rest is quantized around it."""
    model = RecurrentFloatModel("GRU", clip=2.0)
    quantized, values = _quantized(model), model.values(TEST)
    cells = [node for node in quantized.graph.node if node.op_type == "GRU"]
    assert not any(node.metadata_props for node in cells)
    program = openmxu.compile(quantized, CONFIG, batch=TEST)
    assert 0 < program.device_share < 0.5
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, values)
    for output, array in _reference(model, values).items():
        assert np.abs(results[output] - array).max() < TOLERANCE


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_two_directions(operator: str):
    """A bidirectional node becomes two nodes of the device, with the float model's results in the right places."""
    model = _bidirectional(operator)
    values = {"x": np.random.default_rng(1).uniform(-1, 1, (TEST, 7, 4)).astype(np.float32)}
    quantized = openmxu.quantize(model, values)
    cells = [node for node in quantized.graph.node if node.op_type == operator]
    directions = [onnx.helper.get_node_attr_value(node, "direction") for node in cells]
    assert directions == [b"forward", b"reverse"]
    program = openmxu.compile(quantized, CONFIG)
    assert program.device_share == 1
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, values)
    session = exact_session(model.SerializeToString())
    for name, array in zip(["sequence", "y"], session.run(["sequence", "y"], values), strict=True):
        assert np.abs(results[name] - array).max() < TOLERANCE


def _values(count: int) -> dict[str, np.ndarray]:
    return RecurrentFloatModel("GRU").values(count)


def _bidirectional(operator: str) -> onnx.ModelProto:
    """One node with two directions, which begin with the same states where there are two of them."""
    shape, count = RecurrentFloatModel, GATES[operator]
    rows = count * shape.units
    random = np.random.default_rng(0)
    arrays = {
        "W": random.normal(size=(2, rows, shape.inputs)).astype(np.float32),
        "R": random.normal(size=(2, rows, shape.units)).astype(np.float32) / 3,
        "B": random.normal(size=(2, 2 * rows)).astype(np.float32) / 3,
    }
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=[1, 0, 2]),
        onnx.helper.make_node(
            operator,
            ["turned", "W", "R", "B"],
            ["sequence", "y"],
            name="both",
            hidden_size=shape.units,
            direction="bidirectional",
        ),
    ]
    float_ = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "both",
        [onnx.helper.make_tensor_value_info("x", float_, ["batch", shape.length, shape.inputs])],
        [
            onnx.helper.make_tensor_value_info("sequence", float_, [shape.length, 2, "batch", shape.units]),
            onnx.helper.make_tensor_value_info("y", float_, [2, "batch", shape.units]),
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_splitting_directions_changes_nothing(operator: str, layout: int):
    """With states that are inputs, constants, or one tensor for both states of an LSTM; ONNX's evaluator knows both
    layouts."""
    random = np.random.default_rng(2)
    length, batch, inputs, units, count = 5, 3, 4, 6, GATES[operator]
    state = (batch, 2, units) if layout else (2, batch, units)
    constants = {
        "W": random.normal(size=(2, count * units, inputs)).astype(np.float32),
        "R": random.normal(size=(2, count * units, units)).astype(np.float32),
        "h": random.normal(size=state).astype(np.float32),
    }
    for initial in (["h"] * 2, ["given"] * 2, ["given", "h"]):
        names = ["x", "W", "R", "", "", *initial[: 1 if operator == "GRU" else 2]]
        node = onnx.helper.make_node(
            operator, names, ["Y", "Y_h"], hidden_size=units, direction="bidirectional", layout=layout
        )
        x = (batch, length, inputs) if layout else (length, batch, inputs)
        ports = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(dims))
            for name, dims in (("x", x), ("given", state))
            if name in names
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in ("Y", "Y_h")]
        tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = onnx.helper.make_graph([node], "both", ports, outputs, tensors)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        values = {name: random.normal(size=dims).astype(np.float32) for name, dims in (("x", x), ("given", state))}
        values = {item.name: values[item.name] for item in ports}
        runs = []
        for _ in range(2):
            evaluator = ReferenceEvaluator(model) if layout else exact_session(model.SerializeToString())
            runs.append(evaluator.run(None, values))
            split_directions(model.graph)
        assert {node.op_type for node in model.graph.node} >= {operator, "Concat"}
        for before, after in zip(*runs, strict=True):
            np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_weights_that_are_not_constants():
    model = RecurrentFloatModel("GRU").model()
    weights = next(item for item in model.graph.initializer if item.name == "W1")
    model.graph.initializer.remove(weights)
    shape = list(weights.dims)
    model.graph.input.append(onnx.helper.make_tensor_value_info("W1", onnx.TensorProto.FLOAT, ["batch", *shape[1:]]))
    values = {**_values(1), "W1": numpy_helper.to_array(weights)}
    quantized = openmxu.quantize(model, values)
    cells = [node for node in quantized.graph.node if node.op_type == "GRU"]
    assert [bool(node.metadata_props) for node in cells] == [False, True]
