"""Damaged models that once ended in a traceback, in a crash of ONNX Runtime, or not at all."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from openmxu.compiler.onnx import host_graph
from tests.compiler.models.graphs import constants, dequantize, layer, model, node, quantize
from tests.compiler.models.images import image_model, parameters

CONFIG = openmxu.Config.for_size(4)
VALUES = constants(np.random.default_rng(0))
IMAGES = parameters(np.random.default_rng(0))


def refuse(proto: onnx.ModelProto | bytes, message: str) -> None:
    with pytest.raises(openmxu.CompileError, match=message) as caught:
        openmxu.compile(proto, CONFIG)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [b"MatMul", b"sums", b"x_real"])
def test_a_name_that_is_no_text(name: bytes) -> None:
    data = model(layer(), VALUES).SerializeToString()
    assert name in data
    refuse(data.replace(name, b"\xff" * len(name)), "the model is damaged: the name .* is no text")


@pytest.mark.parametrize("kind", [63, 99])
def test_a_type_that_onnx_does_not_have(kind: int) -> None:
    proto = model(layer(), VALUES)
    proto.graph.input[0].type.tensor_type.elem_type = kind
    refuse(proto, rf"input 'x' must be of a type of numbers that numpy knows, not number {kind}|not valid ONNX")


def test_a_huge_batch() -> None:
    proto = model(layer(), VALUES)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = (1 << 31) - 1
    refuse(proto, "a batch of 2,147,483,647 is too large for one execution")


@pytest.mark.parametrize("length", [1 << 31, 1 << 40])
def test_huge_images(length: int) -> None:
    pool = node("MaxPool", "x", "y", kernel_shape=[2, 2])
    proto = image_model([pool], IMAGES)
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_value = length
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    refuse(proto, "bytes of host memory, but host_address_width|.* has .* elements|must have fixed")


@pytest.mark.parametrize("batch", [-1, 0, 3])
def test_negative_lengths(batch: int) -> None:
    proto = model(layer(), VALUES)
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value, dims[1].dim_value = batch, -1
    refuse(proto, "input 'x' must have fixed dimensions")


def test_rows_too_many_to_try_out() -> None:
    """The host's part would be given 2**40 numbers."""
    proto = model([node("Softmax", "x", "s", axis=-1), quantize("s", "y", "h")], VALUES, ("float32", "uint8"))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1 << 40
    refuse(proto, "'x' has 2,199,023,255,552 elements")


def test_results_too_many_to_try_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's part would make more numbers than it is given; two batch elements have 50 each."""
    monkeypatch.setattr(host_graph, "_MOST_ELEMENTS", 150)
    nodes = [node("Softmax", "x", "s"), node("Concat", "s s", "c", axis=1), quantize("c", "y", "h")]
    refuse(model(nodes, VALUES, ("float32", "uint8")), "'c' has 200 elements")


def test_an_output_of_another_type() -> None:
    proto = model(layer(), VALUES)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT8
    refuse(proto, "the output 'y' is uint8, but the model declares another type")


def test_ceil_mode() -> None:
    pool = node("MaxPool", "x_real", "p", kernel_shape=[2, 2], ceil_mode=-1)
    refuse(image_model([dequantize("x"), pool, quantize("p", "y", "x")], IMAGES), "ceil_mode must be 0 or 1, not -1")


def test_an_input_that_is_missing() -> None:
    """ONNX Runtime crashes if a zero point of QLinearConcat is missing, and the batch makes this one the host's."""
    join = node("QLinearConcat", "h_scale h_zero_point x x_scale -", "j", axis=0, domain="com.microsoft")
    nodes = [join, node("DequantizeLinear", "j x_scale x_zero_point", "x_real"), *layer()[1:]]
    proto = model(nodes, VALUES)
    proto.opset_import.add(domain="com.microsoft", version=1)
    refuse(proto, r"node 'j' \(QLinearConcat\): an input is missing")
