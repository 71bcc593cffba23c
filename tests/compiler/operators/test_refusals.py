"""Models that cannot be compiled raise errors of one line with the problem, its place, and supported alternatives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import openmxu
from openmxu import ModelError, UnsupportedOperatorError
from openmxu.models import DIGITS_MODEL
from tests.compiler.models.graphs import INPUTS, OUTPUTS, constants, dequantize, followed, layer, model, node, quantize

CONFIG = openmxu.Config()
VALUES = constants(np.random.default_rng(0))


def refuse(proto: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        openmxu.compile(proto, CONFIG, strict=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 1, 100, 5000, -1])
def test_truncated_file(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(DIGITS_MODEL.read_bytes()[:length])
    refuse(path, ModelError, "no ONNX model, or truncated|not valid ONNX")
    refuse(path.read_bytes(), ModelError, "no ONNX model, or truncated|not valid ONNX")


def test_text_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "notes.onnx"
    path.write_text("This is not a model.\n" * 100)
    refuse(path, ModelError, r"notes\.onnx is no ONNX model, or truncated")


@pytest.mark.parametrize("ending", ["json", "textproto", "onnxtxt", "onnx"])
def test_any_name_means_the_binary_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"model.{ending}"
    path.write_text("{ broken")
    refuse(path, ModelError, "no ONNX model, or truncated")
    path.write_bytes(DIGITS_MODEL.read_bytes())
    assert openmxu.compile(path, CONFIG).outputs[0].name == "logits"


@pytest.mark.parametrize("length", [10, None])
def test_truncated_external_data(tmp_path: Path, length: int | None) -> None:
    """A separate file of constants is truncated or missing."""
    proto = onnx.load(DIGITS_MODEL)
    path, data = tmp_path / "model.onnx", tmp_path / "weights.bin"
    onnx.save(proto, path, save_as_external_data=True, location=data.name, size_threshold=0)
    assert openmxu.compile(path, CONFIG).outputs[0].name == "logits"
    contents = data.read_bytes()
    data.unlink()
    if length is not None:
        data.write_bytes(contents[:length])
    refuse(path, ModelError, "no ONNX model, or truncated")


def test_constant_of_unknown_type() -> None:
    proto = model(layer(), VALUES)
    proto.graph.initializer[0].data_type = 99
    refuse(proto, ModelError, r"the constant '\w+' is of the unknown type 99")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        openmxu.compile(tmp_path / "absent.onnx", CONFIG)


def test_invalid_model() -> None:
    nodes = layer()
    nodes[2].input.append("w_real")
    refuse(model(nodes, VALUES), ModelError, "the model is not valid ONNX: ")


def changed(change: Callable[[onnx.ModelProto], None]) -> onnx.ModelProto:
    """A model of two layers, ``sums`` to ``z`` and ``z`` to ``y``, made invalid by ``change``."""
    proto = in_the_middle()
    change(proto)
    return proto


def without(name: str) -> Callable[[onnx.ModelProto], None]:
    def change(proto: onnx.ModelProto) -> None:
        (item,) = (item for item in proto.graph.initializer if item.name == name)
        proto.graph.initializer.remove(item)

    return change


def circle(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].input[0] = "y"


def loop(proto: onnx.ModelProto) -> None:
    proto.graph.node[2].input[0] = "sums"


def out_of_order(proto: onnx.ModelProto) -> None:
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


def shapeless(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].type.tensor_type.ClearField("shape")


def of_opset(version: int) -> Callable[[onnx.ModelProto], None]:
    def change(proto: onnx.ModelProto) -> None:
        proto.opset_import[0].version = version

    return change


NEWEST = onnx.defs.onnx_opset_version()
BROKEN = {
    "missing weights": (
        without("w"),
        r"node 'w_real' \(DequantizeLinear\) uses 'w', which is no initializer and no input, .* the file lacks it",
    ),
    "missing scale": (without("h_scale"), r"node 'z' \(QuantizeLinear\) uses 'h_scale', which is no initializer"),
    "circle": (circle, r"node 'x_real' \(DequantizeLinear\) uses 'y', .* the graph has a cycle; cut it"),
    "loop": (loop, r"node 'sums' \(MatMul\) uses 'sums', .* the graph has a cycle; cut it"),
    "order": (out_of_order, r"node 'y' \(QLinearMatMul\) uses 'z', which 'z' \(QuantizeLinear\) makes only behind it"),
    "no shape": (shapeless, "input 'x' has no shape; give it a batch and fixed dimensions behind that"),
    "old operators": (of_opset(9), rf"the model's opset is 9, but .* know 10 to {NEWEST}"),
    "operators of the future": (
        of_opset(NEWEST + 1),
        rf"the model's opset is {NEWEST + 1}, but .* know 10 to {NEWEST}",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graph(name: str) -> None:
    change, message = BROKEN[name]
    refuse(changed(change), ModelError, message)


def test_graphs_in_nodes() -> None:
    branch = onnx.helper.make_graph([node("Identity", "sums", "t")], "branch", [], [onnx.ValueInfoProto(name="t")])
    proto = in_the_middle(node("If", "c", "f", then_branch=branch, else_branch=branch), last="f", c=np.array(True))
    refuse(proto, UnsupportedOperatorError, r"node 'f' \(If\): the operator is not supported")
    branch.node[0].input[0] = "nowhere"
    proto = in_the_middle(node("If", "c", "f", then_branch=branch, else_branch=branch), last="f", c=np.array(True))
    refuse(proto, ModelError, r"not valid ONNX|node 'f' \(If\) uses 'nowhere', .*: the file lacks it")


def test_real_model() -> None:
    values = {"w": np.ones((INPUTS, OUTPUTS), np.float32)}
    proto = model([node("MatMul", "x w", "m"), node("Relu", "m", "y")], values, ("float32", "float32"))
    refuse(proto, UnsupportedOperatorError, r"node 'm' \(MatMul\): nothing in the model is quantized; openmxu quantize")


def test_dynamically_quantized_model() -> None:
    dynamic = onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "q_scale", "q_zero_point"], name="q")
    proto = model([dynamic, node("MatMulInteger", "q w q_zero_point", "y")], VALUES, ("float32", "int32"))
    reason = r"node 'q' \(DynamicQuantizeLinear\): it chooses scales while the model runs; openmxu quantize makes"
    refuse(proto, UnsupportedOperatorError, reason)


def test_scales_as_inputs() -> None:
    proto = model([dequantize("x"), *layer()[1:]], VALUES)
    kept = [item for item in proto.graph.initializer if item.name != "x_scale"]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    proto.graph.input.append(onnx.helper.make_tensor_value_info("x_scale", TensorProto.FLOAT, []))
    refuse(proto, ModelError, "input 'x_scale' is one number; scales, zero points and the like must be constants")


def test_unknown_operator_names_node_and_where_operators_are_listed() -> None:
    proto = in_the_middle(node("Softmax", "sums", "soft"), last="soft")
    reason = r"node 'soft' \(Softmax\): the operator is not supported; docs/compiler.md lists those that are"
    refuse(proto, UnsupportedOperatorError, reason)
    with pytest.raises(UnsupportedOperatorError) as caught:
        openmxu.compile(proto, CONFIG, strict=True)
    assert (caught.value.node, caught.value.operator) == ("soft", "Softmax")


def test_operator_of_another_domain() -> None:
    nodes = layer()
    nodes[2].domain = "com.microsoft"
    refuse(model(nodes, VALUES), UnsupportedOperatorError, r"node 'sums' \(com\.microsoft\.MatMul\)")


def in_the_middle(*middle: onnx.NodeProto, last: str = "sums", **values: np.ndarray) -> onnx.ModelProto:
    return model(followed(layer(*middle, last=last, output="z")), VALUES | values)


def with_layer(*middle: onnx.NodeProto, last: str = "sums", **values: np.ndarray) -> onnx.ModelProto:
    return model(layer(*middle, last=last), VALUES | values)


UNSUPPORTED = {
    "real weights": (
        model([dequantize("x"), node("MatMul", "x_real r", "y")], VALUES | {"r": np.ones((INPUTS, OUTPUTS), "f4")}),
        r"node 'y' \(MatMul\): the weights must be an int8 or uint8 constant through DequantizeLinear",
    ),
    "real input": (
        model([dequantize("w"), node("MatMul", "x w_real", "y")], VALUES, ("float32", "float32")),
        r"node 'y' \(MatMul\): input 0 must be int8, uint8 or int16 through DequantizeLinear",
    ),
    "matrix added": (
        in_the_middle(node("Add", "sums m", "t"), last="t", m=np.ones((3, OUTPUTS), np.float32)),
        r"node 't' \(Add\): supported: a constant of 1 or 30 values",
    ),
    "bias behind a limit": (
        in_the_middle(node("Relu", "sums", "r"), node("Add", "r c", "t"), last="t", c=np.ones(OUTPUTS, np.float32)),
        r"node 't' \(Add\): supported: a constant bias",
    ),
    "branch": (
        in_the_middle(node("Relu", "sums", "r"), node("Add", "r sums", "t"), last="t"),
        r"'sums' is used 2 times; supported between quantized tensors only",
    ),
    "negative Gemm": (
        model([*layer()[:2], node("Gemm", "x_real w_real", "sums", alpha=-0.5), quantize("sums", "y", "h")], VALUES),
        r"\(Gemm\): alpha must be positive, not -0.5",
    ),
    "transposed Gemm": (
        model([*layer()[:2], node("Gemm", "x_real w_real", "sums", transA=1), quantize("sums", "y", "h")], VALUES),
        r"\(Gemm\): transA must be 0",
    ),
    "scales along the inputs": (
        model(
            [
                dequantize("x"),
                node("DequantizeLinear", "w rows_scale rows_zero_point", "w_real", axis=0),
                *layer()[2:],
            ],
            VALUES | {"rows_scale": np.ones(INPUTS, np.float32), "rows_zero_point": np.zeros(INPUTS, np.int8)},
        ),
        "scales of the weights must be per tensor or per output column",
    ),
    "16-bit tensor": (
        in_the_middle(h_zero_point=np.uint16(3)),
        r"node 'z' \(QuantizeLinear\): the output must be uint8, int8 or int16",
    ),
    "requantized by hand": (
        model(
            followed(
                [
                    node("MatMulInteger", "x w", "s"),
                    node("Cast", "s", "r", to=TensorProto.FLOAT),
                    quantize("r", "z", "h"),
                ]
            ),
            VALUES,
        ),
        r"node 'z' \(QuantizeLinear\): supported on float32 inputs and between quantized tensors",
    ),
    "other cast": (
        model(
            followed([node("MatMulInteger", "x w", "s"), node("Cast", "s", "z", to=TensorProto.UINT8)]),
            VALUES,
        ),
        r"node 'z' \(Cast\): supported: int32 sums",
    ),
    "batch reshaped away": (
        model([node("Reshape", "x one", "f"), node("MatMulInteger", "f w", "y")], VALUES | {"one": np.array([1, -1])}),
        r"node 'f' \(Reshape\): the batch must stay the first dimension",
    ),
    "nothing but the host": (
        model([dequantize("x"), node("Softmax", "x_real", "y")], VALUES, ("uint8", "float32")),
        r"node 'y' \(Softmax\): the operator is not supported; ",
    ),
    "no layer": (
        model([dequantize("x"), quantize("x_real", "y", "x")], VALUES, columns=(INPUTS, INPUTS)),
        r"node 'y' \(QuantizeLinear\): nothing on the device computes its result 'y'",
    ),
    "type of the input": (
        model(layer(), VALUES, ("int32", "uint8")),
        r"node 'x_real' \(DequantizeLinear\): supported on .*; the host cannot compute it either: ",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_use(name: str) -> None:
    proto, message = UNSUPPORTED[name]
    refuse(proto, UnsupportedOperatorError, message)


def open_dimension() -> onnx.ModelProto:
    proto = model(layer(), VALUES)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "columns"
    return proto


def two_inputs() -> onnx.ModelProto:
    proto = model(layer(), VALUES)
    proto.graph.input.add().CopyFrom(proto.graph.input[0])
    proto.graph.input[1].name = "z"
    return proto


def one_more_output(name: str) -> onnx.ModelProto:
    proto = model(layer(), VALUES)
    proto.graph.output.append(onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1]))
    return proto


def two_batches() -> onnx.ModelProto:
    proto = two_inputs()
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 3
    return proto


INVALID = {
    "zero scale": (with_layer(h_scale=np.float32(0)), "node 'y': the scale must be a positive, finite, normal"),
    "negative scale": (with_layer(x_scale=np.float32(-1)), "node 'x_real': the scale must be positive|a positive"),
    "infinite scale": (with_layer(w_scale=np.float32(np.inf)), "normal float32 number, not inf"),
    "product of scales": (
        with_layer(x_scale=np.float32(1e-30), w_scale=np.float32(1e-30)),
        "node 'sums': input scale × weight scale must be",
    ),
    "quotient of scales": (with_layer(h_scale=np.float32(1e-37), x_scale=np.float32(1e10)), "÷ output scale must be"),
    "shapes": (
        with_layer(w=np.ones((INPUTS + 1, OUTPUTS), np.int8)),
        r"node 'sums': input rows have 50 values, but the weights' shape is \(51, 30\)",
    ),
    "bias too large": (
        with_layer(node("Add", "sums c", "t"), last="t", c=np.full(OUTPUTS, 1e9, np.float32)),
        "node 't': the bias does not fit int32",
    ),
    "zero point of another type": (with_layer(x_zero_point=np.int8(3)), "node 'x_real': the zero point must be uint8"),
    "number of weight zero points": (
        model([node("MatMulInteger", "x w z p", "y")], VALUES | {"z": np.uint8(0), "p": np.zeros(7, np.int8)}),
        "node 'y': the weight zero point must have 1 or 30 values, not 7",
    ),
    "open dimension": (
        open_dimension(),
        "fixed dimensions after the batch, not 'columns'; --shape columns=N fixes it, in Python the argument shapes$",
    ),
    "input without a use": (two_inputs(), "nothing uses the input 'z'"),
    "two batches": (two_batches(), "all inputs must have the same batch"),
    "output that is an input": (one_more_output("x"), "nothing computes the output 'x': it is an input"),
    "constant output": (one_more_output("w_real"), "the output 'w_real' does not depend on any input"),
    "type of the input": (
        model(layer(), VALUES, ("complex64", "uint8")),
        "input 'x' must be of a type of numbers that numpy knows, not complex64",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_use(name: str) -> None:
    proto, message = INVALID[name]
    refuse(proto, ModelError, message)
