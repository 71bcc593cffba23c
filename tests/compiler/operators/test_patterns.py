"""Every supported pattern gives the numbers of ONNX Runtime after compilation, on the interpreter."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import openmxu
from openmxu.models import DIGITS_MODEL
from scripts.exactness import random_bytes, reference
from tests.compiler.models.graphs import INPUTS, OUTPUTS, constants, dequantize, layer, model, node, quantize

CONFIG = openmxu.Config()
ROWS = 40


def check(proto: onnx.ModelProto, values: np.ndarray, optimize: bool = True) -> np.ndarray:
    """Compare type, shape and every value with ONNX Runtime; returns the values."""
    program = openmxu.compile(proto, CONFIG)
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = program.run(device, values)["y"]
    expected = reference(proto, values, optimize)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert (result != expected).sum() == 0
    return result


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(3)


def gemm(**attributes: object) -> list[onnx.NodeProto]:
    return [
        dequantize("x"),
        dequantize("w", axis=1),
        dequantize("b", axis=0),
        node("Gemm", "x_real w_real b_real", "sums", **attributes),
    ]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("per_column", [True, False])
def test_gemm(random: np.random.Generator, dtype: str, per_column: bool, optimize: bool) -> None:
    proto = model([*gemm(), quantize("sums", "y", "h")], constants(random, dtype, per_column), (dtype, dtype))
    check(proto, random_bytes(random, dtype, (ROWS, INPUTS)), optimize)


def test_gemm_with_transposed_weights(random: np.random.Generator) -> None:
    values = constants(random, per_column=True)
    values["w"] = np.ascontiguousarray(values["w"].T)
    nodes = gemm(transB=1)
    nodes[1] = dequantize("w", axis=0)
    result = check(model([*nodes, quantize("sums", "y", "h")], values), random_bytes(random, "uint8", (ROWS, INPUTS)))
    assert len(np.unique(result)) > 50


@pytest.mark.parametrize("factors", [{"alpha": 0.3}, {"beta": 1.7}, {"alpha": 2.5, "beta": 0.1}])
def test_gemm_with_factors(random: np.random.Generator, factors: dict[str, float]) -> None:
    """Bias in units of its own, because ONNX Runtime computes integers only where beta is 1."""
    values = constants(random)
    proto = model([*gemm(**factors), quantize("sums", "y", "h")], values)
    inputs = random_bytes(random, "uint8", (ROWS, INPUTS))
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = openmxu.compile(proto, CONFIG).run(device, inputs)["y"]
    expected = reference(proto, inputs, optimize=False)
    assert np.abs(result.astype(int) - expected).max() <= 1
    assert (result != expected).mean() < 0.01


def qgemm(output: bool = True, bias: bool = True, **attributes: object) -> onnx.NodeProto:
    names = "x x_scale x_zero_point w w_scale w_zero_point"
    names += " b" if bias else " -"
    return node("QGemm", names + " y_scale y_zero_point" * output, "y", domain="com.microsoft", **attributes)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.37}], ids=["", "alpha"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qgemm(random: np.random.Generator, dtype: str, bias: bool, attributes: dict[str, float]) -> None:
    values = constants(random, dtype, per_column=True) | {"y_scale": np.float32(0.09)}
    values["w_zero_point"] = np.zeros(OUTPUTS, np.int8)
    proto = model([qgemm(bias=bias, **attributes)], values, (dtype, dtype))
    result = check(proto, random_bytes(random, dtype, (ROWS, INPUTS)))
    assert len(np.unique(result)) > 50


def test_qgemm_with_transposed_weights_and_real_results(random: np.random.Generator) -> None:
    values = constants(random)
    values["w"] = np.ascontiguousarray(values["w"].T)
    proto = model([qgemm(output=False, transB=1)], values, ("uint8", "float32"))
    check(proto, random_bytes(random, "uint8", (ROWS, INPUTS)))


MIDDLES = {
    "nothing": ((), "sums"),
    "add": ((dequantize("b"), node("Add", "sums b_real", "t")), "t"),
    "add, constant first": ((dequantize("b"), node("Add", "b_real sums", "t")), "t"),
    "real bias": ((node("Add", "sums real_bias", "t"),), "t"),
    "relu": ((node("Relu", "sums", "t"),), "t"),
    "clip": ((node("Clip", "sums low high", "t"),), "t"),
    "clip above": ((node("Clip", "sums - high", "t"),), "t"),
    "add, relu": ((dequantize("b"), node("Add", "sums b_real", "s"), node("Relu", "s", "t")), "t"),
    "identity": ((node("Identity", "sums", "t"),), "t"),
}


@pytest.mark.parametrize("name", MIDDLES)
def test_matmul(random: np.random.Generator, name: str) -> None:
    middle, last = MIDDLES[name]
    values = constants(random)
    values |= {
        "low": np.float32(-3),
        "high": np.float32(6),
        "real_bias": (values["b"] * values["b_scale"]).astype(np.float32),
    }
    check(model(layer(*middle, last=last), values), random_bytes(random, "uint8", (ROWS, INPUTS)))


def test_clip_with_attributes_of_old_operator_sets(random: np.random.Generator) -> None:
    nodes = layer(node("Clip", "sums", "t", min=-2.0, max=5.0), last="t")
    program = openmxu.compile(model(nodes, constants(random), opset=10), CONFIG)
    new = layer(node("Clip", "sums low high", "t"), last="t")
    values = constants(np.random.default_rng(3)) | {"low": np.float32(-2), "high": np.float32(5)}
    assert program.instructions == openmxu.compile(model(new, values), CONFIG).instructions


@pytest.mark.parametrize(("operator", "limits"), [("Relu", ""), ("Clip", " low high")])
def test_limits_on_quantized_tensors(random: np.random.Generator, operator: str, limits: str) -> None:
    values = constants(random, "int8") | {"low": np.int8(-20), "high": np.int8(100)}
    proto = model([*layer(output="t"), node(operator, "t" + limits, "y")], values, ("int8", "int8"))
    result = check(proto, random_bytes(random, "int8", (ROWS, INPUTS)))
    assert result.min() == (0 if operator == "Relu" else -20)


def test_relu_between_dequantize_and_quantize(random: np.random.Generator) -> None:
    values = constants(random) | {"h_zero_point": np.uint8(90)}
    proto = model([*layer(output="h"), dequantize("h"), node("Relu", "h_real", "t"), quantize("t", "y", "h")], values)
    assert check(proto, random_bytes(random, "uint8", (ROWS, INPUTS))).min() == 90


@pytest.mark.parametrize("optimize", [True, False])
def test_two_layers_between_real_numbers(random: np.random.Generator, optimize: bool) -> None:
    """The host quantizes and dequantizes, including halves, numbers out of range and infinities."""
    nodes = [
        quantize("x", "q", "x"),
        dequantize("q", "x"),
        dequantize("w"),
        node("MatMul", "q_real w_real", "sums"),
        quantize("sums", "h", "h"),
        dequantize("h"),
        dequantize("v"),
        node("MatMul", "h_real v_real", "more"),
        quantize("more", "p", "y"),
        node("DequantizeLinear", "p y_scale y_zero_point", "y"),
    ]
    values = constants(random)
    rows = random.normal(0, 1, (ROWS, INPUTS)).astype(np.float32)
    rows[0] = (np.arange(INPUTS, dtype=np.float32) - 20.5) * values["x_scale"]
    rows[1, :4] = 1e30, -1e30, np.inf, -np.inf
    check(model(nodes, values, ("float32", "float32")), rows, optimize)


def test_matmul_integer(random: np.random.Generator) -> None:
    values = constants(random, per_column=True)
    nodes = [node("MatMulInteger", "x w x_zero_point w_zero_point", "y")]
    check(model(nodes, values, ("uint8", "int32")), random_bytes(random, "uint8", (ROWS, INPUTS)))


def test_matmul_integer_without_zero_points(random: np.random.Generator) -> None:
    nodes = [node("MatMulInteger", "x w", "sums"), node("Add", "sums b", "y")]
    check(model(nodes, constants(random), ("int8", "int32")), random_bytes(random, "int8", (ROWS, INPUTS)))


def test_sums_that_the_host_scales(random: np.random.Generator) -> None:
    values = constants(random) | {"factor": random.uniform(0.1, 1, OUTPUTS).astype(np.float32)}
    nodes = [
        node("MatMulInteger", "x w x_zero_point w_zero_point", "sums"),
        node("Cast", "sums", "real", to=TensorProto.FLOAT),
        node("Mul", "real factor", "y"),
    ]
    check(model(nodes, values, ("uint8", "float32")), random_bytes(random, "uint8", (ROWS, INPUTS)))


def test_sums_through_dequantize(random: np.random.Generator) -> None:
    values = constants(random) | {"s": np.float32(0.25)}
    nodes = [node("MatMulInteger", "x w", "sums"), node("DequantizeLinear", "sums s", "y")]
    check(model(nodes, values, ("uint8", "float32")), random_bytes(random, "uint8", (ROWS, INPUTS)))


def test_gemm_that_ends_in_real_numbers(random: np.random.Generator) -> None:
    nodes = gemm()
    nodes[-1].output[0] = "y"
    proto = model(nodes, constants(random, per_column=True), ("uint8", "float32"))
    check(proto, random_bytes(random, "uint8", (ROWS, INPUTS)))


def test_weights_behind_constant_operators(random: np.random.Generator) -> None:
    values = constants(random)
    values["w"] = np.ascontiguousarray(values["w"].T).reshape(-1)
    values["shape"] = np.array([OUTPUTS, INPUTS])
    nodes = [
        node("Reshape", "w shape", "matrix"),
        node("DequantizeLinear", "matrix w_scale w_zero_point", "t"),
        node("Transpose", "t", "w_real", perm=[1, 0]),
    ]
    nodes = [dequantize("x"), *nodes, node("MatMul", "x_real w_real", "sums"), quantize("sums", "y", "h")]
    check(model(nodes, values), random_bytes(random, "uint8", (ROWS, INPUTS)))


@pytest.mark.parametrize(
    ("reshape", "shape"),
    [(node("Flatten", "x", "f", axis=1), None), (node("Reshape", "x shape", "f"), [0, INPUTS])],
)
def test_images(random: np.random.Generator, reshape: onnx.NodeProto, shape: list[int] | None) -> None:
    values = constants(random) | {"shape": np.array(shape or [0])}
    nodes = layer()
    nodes[0] = node("DequantizeLinear", "f x_scale x_zero_point", "x_real")
    proto = model([reshape, *nodes], values)
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    del dims[1:]
    for length in (2, 5, 5):
        dims.add().dim_value = length
    check(proto, random_bytes(random, "uint8", (ROWS, 2, 5, 5)))


def test_sequences(random: np.random.Generator) -> None:
    """Dimensions between batch and columns are treated as rows."""
    proto = model(layer(), constants(random))
    for item, columns in ((proto.graph.input[0], INPUTS), (proto.graph.output[0], OUTPUTS)):
        dims = item.type.tensor_type.shape.dim
        dims[1].dim_value = 7
        dims.add().dim_value = columns
    result = check(proto, random_bytes(random, "uint8", (3, 7, INPUTS)))
    assert result.shape == (3, 7, OUTPUTS)


def test_batch_of_the_model_and_of_the_caller(random: np.random.Generator) -> None:
    proto = model(layer(), constants(random))
    assert openmxu.compile(proto, CONFIG).batch == 64
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    assert openmxu.compile(proto, CONFIG).batch == 5
    assert openmxu.compile(proto, CONFIG, batch=9).batch == 9


def test_model_as_path_bytes_and_object() -> None:
    proto = onnx.load(DIGITS_MODEL)
    programs = [openmxu.compile(item, CONFIG) for item in (DIGITS_MODEL, str(DIGITS_MODEL), proto.SerializeToString())]
    assert {program.instructions for program in programs} == {openmxu.compile(proto, CONFIG).instructions}
