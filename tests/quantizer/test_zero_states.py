"""Initial states of zeros, as exporters compute them, are left out of recurrent cells."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import openmxu
from openmxu.quantizer.zero_states import drop_zero_states
from scripts.random_models import reference
from tests.quantizer.recurrent_float_models import RecurrentFloatModel

CONFIG = openmxu.Config.for_size(8)
MODEL = RecurrentFloatModel("LSTM")
CONSTANTS = {
    "blank": np.zeros((), np.float32),
    "half": np.full((), 0.5, np.float32),
    "fixed": np.zeros((1, 4, MODEL.units), np.float32),
    "origin": np.array([0]),
    "one": np.array([1]),
    "width": np.array([MODEL.units], np.int32),
    "halves": np.array([MODEL.units // 2] * 2),
}
NUMBER = [
    helper.make_node("Shape", ["x"], ["shape"]),
    helper.make_node("Cast", ["shape"], ["small"], to=TensorProto.INT32),
    helper.make_node("Slice", ["small", "origin", "one", "origin"], ["number"]),
    helper.make_node("Concat", ["number", "width"], ["small sizes"], axis=0),
    helper.make_node("Cast", ["small sizes"], ["sizes"], to=TensorProto.INT64),
]
"""How TensorFlow's exporter computes the shape of a state, in int32."""

ZEROS = {
    "expanded": [
        *NUMBER,
        helper.make_node("Expand", ["blank", "sizes"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "origin"], ["state"]),
    ],
    "joined": [
        *NUMBER,
        helper.make_node("ConstantOfShape", ["sizes"], ["rows"]),
        helper.make_node("Split", ["rows", "halves"], ["left", "right"], axis=1),
        helper.make_node("Concat", ["left", "right"], ["together"], axis=1),
        helper.make_node("Unsqueeze", ["together", "origin"], ["state"]),
    ],
    "constant": [helper.make_node("Identity", ["fixed"], ["state"])],
}
OTHERS = {
    "not zeros": [
        *NUMBER,
        helper.make_node("Expand", ["half", "sizes"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "origin"], ["state"]),
    ],
    "filled": [
        *NUMBER,
        helper.make_node(
            "ConstantOfShape", ["sizes"], ["rows"], value=numpy_helper.from_array(np.array([1], np.float32))
        ),
        helper.make_node("Unsqueeze", ["rows", "origin"], ["state"]),
    ],
    "in part": [
        *NUMBER,
        helper.make_node("Expand", ["blank", "sizes"], ["rows"]),
        helper.make_node("Expand", ["half", "sizes"], ["others"]),
        helper.make_node("Split", ["rows", "halves"], ["left", "right"], axis=1),
        helper.make_node("Split", ["others", "halves"], ["first", "second"], axis=1),
        helper.make_node("Concat", ["left", "second"], ["together"], axis=1),
        helper.make_node("Unsqueeze", ["together", "origin"], ["state"]),
    ],
}


def stateful(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """The model whose first cell begins with what these nodes make; its batch is fixed only if that is."""
    proto = MODEL.model()
    cell = next(node for node in proto.graph.node if node.name == "first")
    cell.input.extend(["", "state", "state"])
    kept = [*nodes, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in CONSTANTS.items())
    if any("fixed" in node.input for node in nodes):
        proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
        proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4
    return proto


@pytest.mark.parametrize("name", ZEROS)
def test_zeros_are_left_out(name: str) -> None:
    values = MODEL.values(40)
    program, plain = (
        openmxu.compile(openmxu.quantize(proto, values), CONFIG, batch=4)
        for proto in (stateful(ZEROS[name]), MODEL.model())
    )
    assert program.device_share == 1
    with openmxu.open_device("interpreter", CONFIG) as device:
        results, expected = (item.run(device, values)["probabilities"] for item in (program, plain))
    assert (results == expected).all()


@pytest.mark.parametrize("name", OTHERS)
def test_other_states_are_kept(name: str) -> None:
    proto = stateful(OTHERS[name])
    drop_zero_states(proto.graph)
    cell = next(node for node in proto.graph.node if node.name == "first")
    assert list(cell.input[5:]) == ["state", "state"]


def test_the_float_model_stays_the_same() -> None:
    proto = stateful(ZEROS["joined"])
    values = MODEL.values(12)
    before = reference(proto, values)
    drop_zero_states(proto.graph)
    assert (reference(proto, values) == before).all()
    cell = next(node for node in proto.graph.node if node.name == "first")
    assert list(cell.input[5:]) == ["", ""]
