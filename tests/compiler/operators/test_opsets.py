"""All versions of ONNX's operators from 13 to the newest one, including attributes of newer versions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openmxu
from scripts.random_models import make_model, random_bytes, reference
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import CHANNELS, HEIGHT, WIDTH, parameters

NEWEST = onnx.defs.onnx_opset_version()
NEWEST_OF_ONNX_RUNTIME = 25
CONFIG = openmxu.Config()
VALUES = parameters(np.random.default_rng(0)) | {
    "w": random_bytes(np.random.default_rng(1), "int8", (4, CHANNELS, 3, 3)),
    "b": np.zeros(4, np.int32),
    "w_scale": np.float32(0.01),
    "w_zero_point": np.int8(0),
    "axes": np.array([2, 3]),
    "parts": np.array([2, 2]),
    "wide_scale": np.float32(0.02),
}
INPUTS = random_bytes(np.random.default_rng(2), "uint8", (2, CHANNELS, HEIGHT, WIDTH))


def model(nodes: list[onnx.NodeProto], opset: int, shape: tuple[int, ...]) -> onnx.ModelProto:
    used = {name for item in nodes for name in item.input}
    constants = {name: array for name, array in VALUES.items() if name in used}
    return make_model(nodes, constants, [("x", "uint8", (CHANNELS, HEIGHT, WIDTH))], ("y", "uint8", shape), opset)


def network(opset: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Operators whose definitions have changed between versions; the second model is for ONNX Runtime."""
    split = helper.make_node("Split", ["m", "parts"], ["s", "r"], axis=1)
    nodes = [
        *(dequantize("x"), dequantize("w"), node("Conv", "x_real w_real", "c"), node("Relu", "c", "d")),
        *(quantize("d", "h", "h"), node("MaxPool", "h", "m", kernel_shape=[2, 2]), split),
        *(dequantize("s", "h"), dequantize("r", "h"), node("Add", "s_real r_real", "a"), quantize("a", "p", "y")),
        *(dequantize("p", "y"), node("Sigmoid", "p_real", "g"), quantize("g", "y", "wide")),
    ]
    VALUES["wide_zero_point"] = np.uint8(0)
    shape = (2, HEIGHT - 3, WIDTH - 3)
    return model(nodes, opset, shape), model(nodes, min(opset, NEWEST_OF_ONNX_RUNTIME), shape)


@pytest.mark.parametrize("opset", range(13, NEWEST + 1))
def test_versions(opset: int) -> None:
    ours, theirs = network(opset)
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = openmxu.compile(ours, CONFIG).run(device, INPUTS)["y"]
    assert int(np.abs(result.astype(int) - reference(theirs, INPUTS)).max()) <= 1


def with_attributes(dequantizing: dict[str, int], quantizing: dict[str, int]) -> onnx.ModelProto:
    """A layer of the newest version between DequantizeLinear and a QuantizeLinear without zero point."""
    nodes = [
        node("DequantizeLinear", "x x_scale x_zero_point", "x_real", **dequantizing),
        dequantize("w"),
        node("Conv", "x_real w_real", "c"),
        node("QuantizeLinear", "c h_scale", "y", **quantizing),
    ]
    return model(nodes, NEWEST, (4, HEIGHT - 2, WIDTH - 2))


def test_attributes_that_change_nothing() -> None:
    ours = with_attributes(
        {"output_dtype": TensorProto.FLOAT}, {"output_dtype": TensorProto.UINT8, "precision": TensorProto.FLOAT}
    )
    theirs = with_attributes({}, {})
    theirs.opset_import[0].version = NEWEST_OF_ONNX_RUNTIME
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = openmxu.compile(ours, CONFIG).run(device, INPUTS)["y"]
    assert (result == reference(theirs, INPUTS)).all()


@pytest.mark.parametrize(
    ("dequantizing", "quantizing", "message"),
    [
        ({"output_dtype": TensorProto.FLOAT16}, {}, r"node 'x_real' \(DequantizeLinear\): the output must be float32"),
        ({}, {"precision": TensorProto.FLOAT16}, r"node 'y' \(QuantizeLinear\): it must divide in float32"),
        ({}, {"output_dtype": TensorProto.UINT16}, r"node 'y' \(QuantizeLinear\): .* int8 or int16, not uint16"),
    ],
)
def test_attributes_that_would_change_numbers(
    dequantizing: dict[str, int], quantizing: dict[str, int], message: str
) -> None:
    proto = with_attributes(dequantizing, quantizing)
    names = "y h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point"
    proto.graph.node.append(node("QLinearConv", names, "z"))
    proto.graph.output[0].name = "z"
    present = {item.name for item in proto.graph.initializer}
    more = {"v": np.ones((2, 4, 1, 1), np.int8)}
    for name in names.split()[1:]:
        if name not in present:
            proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray((VALUES | more)[name]), name))
    with pytest.raises(openmxu.UnsupportedOperatorError, match=message):
        openmxu.compile(proto, CONFIG, strict=True)


def scaled_by_channel(opset: int) -> onnx.ModelProto:
    """A convolution with a scale for each channel."""
    VALUES["scales"] = np.linspace(0.005, 0.02, 4, dtype=np.float32)
    nodes = [
        dequantize("x"),
        node("DequantizeLinear", "w scales", "w_real", axis=0),
        *(node("Conv", "x_real w_real", "c"), quantize("c", "y", "y")),
    ]
    return model(nodes, opset, (4, HEIGHT - 2, WIDTH - 2))


@pytest.mark.parametrize("opset", [10, 11, 12])
def test_an_axis_before_there_was_one(opset: int) -> None:
    """ONNX Runtime's quantizer writes it into models of any version, which ONNX Runtime does not run then."""
    theirs = scaled_by_channel(13)
    ours = scaled_by_channel(13)
    ours.opset_import[0].version = opset
    before = ours.SerializeToString(deterministic=True)
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = openmxu.compile(ours, CONFIG).run(device, INPUTS)["y"]
    assert (result == reference(theirs, INPUTS)).all()
    assert ours.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("what", ["type", "shape"])
def test_outputs_without_a_type_or_a_shape(what: str) -> None:
    theirs = scaled_by_channel(13)
    ours = scaled_by_channel(13)
    (ours.graph.output[0] if what == "type" else ours.graph.output[0].type.tensor_type).ClearField(what)
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = openmxu.compile(ours, CONFIG).run(device, INPUTS)["y"]
    assert (result == reference(theirs, INPUTS)).all()
