"""LSTM and GRU of ONNX: close to ONNX Runtime's float kernels in all variants, and errors with reasons."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import openmxu
from openmxu.compiler import ModelError, UnsupportedOperatorError, import_model
from openmxu.exact_session import exact_session
from tests.compiler.models.recurrent_models import RecurrentModel

CONFIG = openmxu.Config.preset("tiny", unified_buffer_rows=1024)

# Hidden states are int8 with steps of 1/127, and the errors of several steps add up.
TOLERANCE = 0.03

CELLS = {
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
    "gru, linear before reset": ("GRU", {"linear_before_reset": 1}),
}


def _model(cell: str, **options: object) -> RecurrentModel:
    operator, attributes = CELLS[cell]
    return RecurrentModel(operator, **{**options, "attributes": {**attributes, **options.get("attributes", {})}})


def _results(model: RecurrentModel, values: dict[str, np.ndarray], batch: int) -> dict[str, np.ndarray]:
    """The results of the interpreter, which must equal those of the definition."""
    program = openmxu.compile(model.model(), CONFIG, batch=batch)
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, values)
    expected = import_model(model.model()).evaluate(values)
    assert all(np.array_equal(results[name], expected[name]) for name in expected)
    return results


def _check(model: RecurrentModel, batch: int = 3) -> None:
    values = model.values(batch)
    results, reference = _results(model, values, batch), model.reference(values)
    assert results.keys() == reference.keys()
    for name, array in reference.items():
        assert results[name].shape == array.shape
        assert np.abs(results[name] - array).max() < TOLERANCE
        assert np.abs(array).max() > 10 * TOLERANCE


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_every_output(cell: str, batch_first: bool):
    outputs = ["Y", "Y_h", "sequence", "last", *(["Y_c"] if cell == "lstm" else [])]
    _check(_model(cell, batch_first=batch_first, outputs=outputs))


@pytest.mark.parametrize("cell", CELLS)
def test_layout_1(cell: str):
    _check(_model(cell, layout=1, states=True, outputs=["Y", "Y_h", "sequence", "last"]))


@pytest.mark.parametrize("cell", CELLS)
def test_reverse(cell: str):
    _check(_model(cell, outputs=["Y", "Y_h"], attributes={"direction": "reverse"}))


@pytest.mark.parametrize("cell", CELLS)
def test_initial_states(cell: str):
    _check(_model(cell, states=True, outputs=["Y", "Y_h"]))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("cell", CELLS)
def test_constant_initial_states(cell: str, layout: int):
    """As PyTorch exports them for a fixed batch: zeros, or the same state for all elements."""
    names = ["h0", "c0"] if cell == "lstm" else ["h0"]
    state = np.linspace(-0.9, 0.9, 6, dtype=np.float32)
    shape = (3, 1, 6) if layout else (1, 3, 6)
    for fixed in ({name: np.broadcast_to(state, shape) for name in names}, dict.fromkeys(names, np.zeros(shape, "f"))):
        _check(_model(cell, layout=layout, states=True, fixed=fixed, outputs=["Y", "Y_h"]))
    one = {names[-1]: np.broadcast_to(state, shape)}
    _check(_model(cell, layout=layout, states=True, fixed=one, outputs=["Y_h"]))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (np.eye(3, 6, dtype=np.float32)[np.newaxis], "a constant initial_h must be the same for all elements"),
        (np.ones((2, 3, 6), np.float32), r"initial_h must have the shape \(1, batch, 6\)"),
        (np.ones((1, 3, 5), np.float32), r"initial_h must have the shape \(1, batch, 6\)"),
    ],
)
def test_constant_initial_states_that_are_refused(state: np.ndarray, reason: str):
    with pytest.raises(UnsupportedOperatorError, match=rf"node 'cell' \(GRU\): {reason}"):
        import_model(_model("gru", states=True, fixed={"h0": state}).model(), strict=True)


def test_states_have_sixteen_bits():
    """The final state of a sequence is precise enough to start the next one."""
    model = _model("gru", states=True, length=1, attributes={})
    values = model.values(4)
    steps = _results(model, values, 4)["Y_h"] * 127
    assert np.abs(steps - np.rint(steps)).max() > 0.3
    assert np.abs(steps * 256 - np.rint(steps * 256)).max() < 0.01


def test_metadata_sets_scales():
    """A cell state that saturates at 0.5, and tables whose inputs end at 0.25."""
    model = _model("lstm", outputs=["Y_c"], metadata={"openmxu.cell": repr(0.5 / 32768)})
    values = model.values(3)
    assert np.abs(model.reference(values)["Y_c"]).max() > 0.6
    assert np.abs(_results(model, values, 3)["Y_c"]).max() <= 0.5
    model = _model("gru", metadata={"openmxu.tanh": repr(0.25 / 127)})
    assert np.abs(_results(model, values, 3)["Y_h"]).max() < np.tanh(0.26)


def test_one_cell_after_another():
    """A second cell reads the results of the first one, and starts with its final state."""
    model = _model("gru", outputs=["Y"]).model()
    graph = model.graph
    second = [name.replace("cell", "second") for name in ("scaled", "second")]
    graph.initializer.extend(
        [
            onnx.numpy_helper.from_array(np.float32(1 / 127), "h scale"),
            onnx.numpy_helper.from_array(np.array([1]), "one"),
            *(_copy(item, f"{item.name} again") for item in graph.initializer if item.name[0] in "R"),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Squeeze", ["Y", "one"], ["steps"]),
            helper.make_node("QuantizeLinear", ["steps", "h scale", "zero"], [second[0]]),
            helper.make_node("DequantizeLinear", [second[0], "h scale", "zero"], ["again"]),
            helper.make_node("DequantizeLinear", ["R integers again", "R scale again"], ["W again"], axis=1),
            helper.make_node(
                "GRU", ["again", "W again", "R", "B", "", "Y_h"], ["", "Z_h"], name="second", hidden_size=6
            ),
        ]
    )
    graph.output[0].CopyFrom(helper.make_tensor_value_info("Z_h", onnx.TensorProto.FLOAT, [None] * 3))
    values = _model("gru").values(3)
    program = openmxu.compile(model, CONFIG, batch=3)
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = program.run(device, values)["Z_h"]
    assert np.array_equal(result, import_model(model).evaluate(values)["Z_h"])
    session = exact_session(model.SerializeToString())
    assert np.abs(result - session.run(None, values)[0]).max() < 2 * TOLERANCE  # for two cells


def _copy(item: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(item)
    copy.name = name
    return copy


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"direction": "bidirectional"}, "the direction must be forward or reverse, not bidirectional: use a node for"),
        (
            {"activations": ["Sigmoid", "Relu", "Tanh"]},
            "activations must be Sigmoid, Tanh, Tanh, not Sigmoid, Relu, Tanh",
        ),
        ({"activation_alpha": [0.5]}, "activation_alpha is not supported"),
        ({"clip": 3.0}, "clip is not supported"),
        ({"input_forget": 1}, "input_forget is not supported"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_attributes_that_are_refused(attributes: dict[str, object], reason: str):
    with pytest.raises(UnsupportedOperatorError, match=rf"node 'cell' \(LSTM\): {reason}"):
        import_model(_model("lstm", attributes=attributes).model(), strict=True)


@pytest.mark.parametrize(
    ("index", "name", "reason"),
    [
        (4, "lengths", "sequence_lens is not supported: all sequences must have the same length"),
        (7, "peepholes", r"peepholes \(input P\) are not supported"),
    ],
)
def test_inputs_that_are_refused(index: int, name: str, reason: str):
    model = _model("lstm").model()
    cell = next(node for node in model.graph.node if node.name == "cell")
    cell.input.extend([""] * (index + 1 - len(cell.input)))
    cell.input[index] = name
    array = np.full(3, 5, np.int32) if name == "lengths" else np.zeros((1, 18), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    with pytest.raises(UnsupportedOperatorError, match=rf"node 'cell' \(LSTM\): {reason}"):
        import_model(model, strict=True)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"openmxu.colour": "1"}, "unknown metadata 'openmxu.colour'; known: hidden, cell, sigmoid, memory, tanh"),
        ({"openmxu.cell": "-1"}, "openmxu.cell must be a positive number, not '-1'"),
        ({"openmxu.cell": "wide"}, "openmxu.cell must be a positive number, not 'wide'"),
    ],
)
def test_metadata_that_is_refused(metadata: dict[str, str], reason: str):
    with pytest.raises(ModelError, match=f"node 'cell': {reason}"):
        import_model(_model("lstm", metadata=metadata).model(), strict=True)


def test_metadata_of_others_is_ignored():
    import_model(_model("lstm", metadata={"namespace": "layer/1"}).model())


def test_weights_must_be_quantized():
    model = _model("gru").model()
    nodes = [node for node in model.graph.node if node.output[0] != "W"]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 18, 3), np.float32), "W"))
    with pytest.raises(
        UnsupportedOperatorError, match=r"node 'cell' \(GRU\): W must be a constant of int8 through Deq"
    ):
        import_model(model, strict=True)


def test_input_must_be_quantized():
    model = _model("gru").model()
    next(node for node in model.graph.node if node.name == "cell").input[0] = "turned"
    with pytest.raises(UnsupportedOperatorError, match=r"node 'cell' \(GRU\): its input must be int8 or uint8 through"):
        import_model(model, strict=True)


def test_batch_in_the_wrong_place():
    model = _model("gru", layout=1).model()
    cell = next(node for node in model.graph.node if node.name == "cell")
    del cell.attribute[[item.name for item in cell.attribute].index("layout")]
    # Another Transpose hides that the graph's input has time first.
    model.graph.node.insert(2, helper.make_node("Transpose", ["x"], ["same"], perm=[0, 1, 2]))
    next(node for node in model.graph.node if node.op_type == "QuantizeLinear").input[0] = "same"
    with pytest.raises(UnsupportedOperatorError, match="the batch must be the second of three dimensions of its input"):
        import_model(model, strict=True)


def test_shape_of_weights():
    model = _model("gru", inputs=4).model()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 3
    with pytest.raises(ModelError, match=r"node 'cell' \(GRU\): W must have the shape \(1, 18, 3\), not \(1, 18, 4\)"):
        import_model(model, strict=True)
