"""Shapes that a model computes from those of its inputs, as PyTorch's exporter writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import openmxu
from openmxu.compiler import ModelError, UnsupportedOperatorError, import_model
from openmxu.compiler.onnx.shape_arithmetic import resolve_shapes
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import BATCH as IMAGES
from tests.compiler.models.images import CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters
from tests.compiler.models.recurrent_models import RecurrentModel

CONFIG = openmxu.Config()

NUMBERS = {
    "origin": np.array(0),
    "one": np.array([1]),
    "two": np.array([2]),
    "first": np.array([0]),
    "minus": np.array([-1]),
    "three": np.array([3]),
    "four": np.array([4]),
    "units": np.array([6]),
    "blank": np.zeros((1, 1, 6), np.float32),
}

BATCH = (
    node("Shape", "x", "shape"),
    node("Gather", "shape origin", "number"),
    node("Unsqueeze", "number first", "batch"),
)
"""How PyTorch asks for the batch."""

SLICED = (node("Shape", "x", "shape"), node("Slice", "shape first one first", "batch"))
ENDS = (node("Shape", "x", "batch", end=1),)


def images() -> np.ndarray:
    return random_bytes(np.random.default_rng(5), "uint8", (IMAGES, CHANNELS, HEIGHT, WIDTH))


def states(fill: onnx.NodeProto, batch: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    return [*batch, node("Concat", "one batch units", "full", axis=0), fill]


EXPANDED = node("Expand", "blank full", "h0")
FILLED = node("ConstantOfShape", "full", "h0")
HALVES = node("ConstantOfShape", "full", "h0", value=numpy_helper.from_array(np.array([0.5], np.float32)))


def recurrent(nodes: Sequence[onnx.NodeProto], operator: str) -> onnx.ModelProto:
    """A model whose initial states are computed by ``nodes``."""
    model = RecurrentModel(operator, states=True, outputs=["Y", "Y_h"]).model()
    given = [item for item in model.graph.input if item.name == "x"]
    cell = [item if item.op_type != operator else _with_one_state(item) for item in model.graph.node]
    del model.graph.input[:], model.graph.node[:]
    model.graph.input.extend(given)
    model.graph.node.extend([*nodes, *cell])
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in NUMBERS.items())
    return model


def _with_one_state(cell: onnx.NodeProto) -> onnx.NodeProto:
    """Both states of an LSTM are the same tensor."""
    copy = onnx.NodeProto()
    copy.CopyFrom(cell)
    for index in range(5, len(copy.input)):
        copy.input[index] = "h0"
    return copy


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
@pytest.mark.parametrize("batch", [BATCH, SLICED, ENDS], ids=["Gather", "Slice", "end"])
@pytest.mark.parametrize("fill", [EXPANDED, FILLED], ids=["Expand", "ConstantOfShape"])
def test_initial_states_of_zeros(operator: str, batch: Sequence[onnx.NodeProto], fill: onnx.NodeProto) -> None:
    plain = RecurrentModel(operator, outputs=["Y", "Y_h"])
    values = plain.values(4)
    result = import_model(recurrent(states(fill, batch), operator)).evaluate(values)
    expected = import_model(plain.model()).evaluate(values)
    assert all((result[name] == expected[name]).all() for name in expected)


def test_initial_states_of_another_constant() -> None:
    fixed = RecurrentModel("GRU", states=True, fixed={"h0": np.full((1, 1, 6), 0.5, np.float32)}, outputs=["Y", "Y_h"])
    values = fixed.values(4)
    result = import_model(recurrent(states(HALVES, BATCH), "GRU")).evaluate(values)
    expected = import_model(fixed.model()).evaluate(values)
    assert all((result[name] == expected[name]).all() for name in expected)


def flattened(*shape: onnx.NodeProto) -> onnx.ModelProto:
    """A convolution whose results are reshaped to ``target`` and multiplied by a matrix."""
    numbers = NUMBERS | {"m": np.random.default_rng(4).integers(-128, 128, (10 * 7 * 9, 5)).astype(np.int8)}
    values = parameters(np.random.default_rng(3)) | numbers
    nodes = [
        *(dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "c"), quantize("c", "h", "h")),
        *(dequantize("h"), *shape, node("Reshape", "h_real target", "f"), quantize("f", "g", "h")),
        *(
            node("DequantizeLinear", "g h_scale h_zero_point", "g_real"),
            node("DequantizeLinear", "m v_scale", "m_real"),
        ),
        *(node("MatMul", "g_real m_real", "p"), quantize("p", "y", "y")),
    ]
    return image_model(nodes, values | {"y_scale": np.float32(20)}, dimensions=1)


SHAPES = {
    "the rest": [*BATCH, node("Concat", "batch minus", "target", axis=0)],
    "of the convolution": [
        *(node("Shape", "h_real", "s"), node("Gather", "s origin", "n"), node("Unsqueeze", "n first", "batch")),
        node("Concat", "batch minus", "target", axis=0),
    ],
    "product": [
        *(node("Shape", "h_real", "s"), node("Slice", "s one two", "channels"), node("Slice", "s two three", "height")),
        *(node("Slice", "s three four", "width"), node("Mul", "channels height", "a"), node("Mul", "a width", "all")),
        *(node("Slice", "s first one", "batch"), node("Concat", "batch all", "target", axis=0)),
    ],
    "cast": [*BATCH, node("Cast", "batch", "i", to=7), node("Concat", "i minus", "target", axis=0)],
    "chosen": [
        *BATCH,
        node("Concat", "batch minus", "given", axis=0),
        node("Mul", "given one", "same"),
        node("Equal", "same origin", "is_missing"),
        node("Where", "is_missing units given", "target"),
    ],
    "quotient": [
        *BATCH,
        node("Div", "batch one", "parts"),
        node("Add", "parts first", "more"),
        node("Concat", "more minus", "target", axis=0),
    ],
    "whatever": [
        *(node("Shape", "h_real", "s"), node("Slice", "s one three", "plane"), node("ReduceProd", "plane", "count")),
        *(node("Slice", "s three four", "width"), node("Mul", "count width", "all")),
        *(*BATCH, node("Concat", "batch all", "target", axis=0)),
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_reshape(name: str) -> None:
    assert differing(flattened(*SHAPES[name]), images(), CONFIG) == 0


def test_zeros_that_mean_nothing() -> None:
    """A Reshape that takes zeros as lengths does not find any behind the arithmetic."""
    nodes = [
        *BATCH,
        node("Shape", "h_real", "s"),
        node("Slice", "s one two", "channels"),
        node("Concat", "batch minus channels", "target", axis=0),
        node("Reshape", "h_real target", "r", allowzero=1),
        node("Flatten", "r", "e"),
    ]
    model = flattened(*nodes)
    last = next(item for item in model.graph.node if item.output[0] == "f")
    last.op_type, last.input[:] = "Identity", ["e"]
    assert differing(model, images(), CONFIG) == 0


def test_arrays_made_of_shapes() -> None:
    """Numbers of columns, counted and turned into real numbers, are a constant whatever the batch is."""
    counted = [
        *(node("Shape", "h_real", "s"), node("Slice", "s three four", "last"), node("Squeeze", "last", "width")),
        node("Range", "origin width unit", "columns"),
        node("Cast", "columns", "real", to=1),
        node("Mul", "real half", "scaled"),
    ]
    nodes = [
        *(dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "c"), quantize("c", "h", "h")),
        *(dequantize("h"), *counted, node("Add", "h_real scaled", "sum"), quantize("sum", "y", "h")),
    ]
    numbers = NUMBERS | {"unit": np.array(1), "half": np.float32(0.5)}
    model = image_model(nodes, parameters(np.random.default_rng(3)) | numbers)
    kinds = {item.op_type for item in resolve_shapes(model).graph.node}
    assert not {"Shape", "Slice", "Squeeze", "Range", "Cast", "Mul"} & kinds
    assert differing(model, images(), CONFIG) == 0


def test_fixed_batch() -> None:
    model = flattened(*SHAPES["the rest"])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    resolved = resolve_shapes(model)
    assert not {"Shape", "Gather", "Unsqueeze", "Concat"} & {item.op_type for item in resolved.graph.node}
    assert differing(model, images(), CONFIG) == 0


def test_the_model_is_not_changed() -> None:
    model = flattened(*SHAPES["product"])
    before = model.SerializeToString(deterministic=True)
    resolve_shapes(model)
    assert model.SerializeToString(deterministic=True) == before


def test_a_model_without_shapes_stays_itself() -> None:
    model = RecurrentModel("GRU").model()
    assert resolve_shapes(model) is model


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Shape", "x", "s"), node("Gather", "s origin", "n"), node("Cast", "n", "r", to=1)],
        [*BATCH, node("Add", "batch one", "more"), node("Concat", "more minus", "target", axis=0)],
        [*BATCH, node("Slice", "shape one first first minus", "target")],
    ],
    ids=["real numbers", "arithmetic with the batch", "backwards"],
)
def test_what_stays(nodes: Sequence[onnx.NodeProto]) -> None:
    """Shapes that are not known are left to others, who refuse them."""
    model = flattened(
        *nodes, *([] if "target" in nodes[-1].output else [node("Concat", "one minus", "target", axis=0)])
    )
    last = nodes[-1].output[0]
    if last != "target":
        model.graph.output.append(helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, []))
    kept = {item.op_type for item in resolve_shapes(model).graph.node}
    assert nodes[-1].op_type in kept
    with pytest.raises((ModelError, UnsupportedOperatorError)):
        import_model(model)


def test_a_shape_as_output_is_refused() -> None:
    values = parameters(np.random.default_rng(3))
    model = image_model([dequantize("x"), node("Shape", "x_real", "y")], values, (CHANNELS, HEIGHT, WIDTH))
    with pytest.raises(UnsupportedOperatorError, match=r"node 'y' \(Shape\)"):
        import_model(model)
