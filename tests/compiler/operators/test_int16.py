"""int16 tensors: exact integers on the device, and ONNX Runtime's results to within one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import openmxu
from openmxu.compiler import import_model
from openmxu.sim.cycle_model import predict
from scripts.random_models import make_model, reference_outputs
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.int16_models import (
    BATCH,
    COLUMNS,
    CONSTANTS,
    FORMS,
    HIDDEN,
    LAYER,
    WEIGHTS,
    convolutions,
    inputs_of,
    model_of,
)

CONFIGS = [openmxu.Config.for_size(size) for size in (4, 16)]


@pytest.mark.parametrize("form", FORMS)
def test_results(form: str) -> None:
    nodes, dtype = FORMS[form]
    model = model_of(nodes, dtype)
    inputs = inputs_of(model)
    # Its optimizer replaces MatMul by one that rounds activations to bytes.
    (theirs,) = reference_outputs(model, inputs, optimize=False).values()
    assert len(np.unique(theirs)) > 10
    expected = import_model(model).evaluate(inputs)["y"]
    assert expected.dtype == theirs.dtype == dtype
    assert abs(expected.astype(int) - theirs).max() <= 1
    for config in CONFIGS:
        program = openmxu.compile(model, config, batch=3, strict=True, effort=0)
        with openmxu.open_device("interpreter", config) as device:
            np.testing.assert_array_equal(program.run(device, inputs)["y"], expected)


def test_convolutions() -> None:
    model = convolutions()
    images = inputs_of(model)
    (theirs,) = reference_outputs(model, images, optimize=False).values()
    expected = import_model(model).evaluate(images)["y"]
    assert len(np.unique(theirs)) > 10
    assert abs(expected.astype(int) - theirs).max() <= 1
    for config in CONFIGS:
        program = openmxu.compile(model, config, batch=2, strict=True, effort=0)
        with openmxu.open_device("interpreter", config) as device:
            np.testing.assert_array_equal(program.run(device, images)["y"], expected)


@pytest.mark.parametrize("form", ["MatMul", "Gemm, Clip", "MatMul, bias, Relu"])
def test_small_sums_are_those_of_onnx_runtime(form: str) -> None:
    """Below 2**24 its float32 sums are exact: steps of inputs and of what is made of them are powers of two."""
    nodes, dtype = FORMS[form]
    values = {"x_scale": 2.0**-10, "w_scale": np.full(HIDDEN, 2.0**-6), "c_scale": np.full(HIDDEN, 2.0**-16)}
    values = {name: np.float32(value) for name, value in values.items()}
    model = model_of(nodes, dtype, **values)
    inputs = inputs_of(model, largest=2000, batch=40)
    (theirs,) = reference_outputs(model, inputs, optimize=False).values()
    np.testing.assert_array_equal(import_model(model).evaluate(inputs)["y"], theirs)


def test_contributed_operators_and_real_numbers() -> None:
    """QuantizeLinear and DequantizeLinear of ONNX Runtime, which older models have; the host does the first and the
    last one."""
    of_runtime = [
        helper.make_node(item.op_type, item.input, item.output, name=item.name, domain="com.microsoft")
        if item.op_type in ("QuantizeLinear", "DequantizeLinear") and "w" not in item.input
        else item
        for item in [quantize("x", "x_words", "x"), dequantize("x_words", "x"), WEIGHTS]
    ]
    nodes = [*of_runtime, node("MatMul", "x_words_real w_real", "s"), quantize("s", "n", "y"), dequantize("n", "y")]
    nodes.append(node("Identity", "n_real", "y"))
    constants = {name: CONSTANTS[name] for item in nodes for name in item.input if name in CONSTANTS}
    model = make_model(nodes, constants, [("x", "float32", (COLUMNS,))], ("y", "float32", (HIDDEN,)))
    values = np.random.default_rng(0).uniform(-20, 20, (BATCH, COLUMNS)).astype(np.float32)
    (theirs,) = reference_outputs(model, {"x": values}, optimize=False).values()
    program = openmxu.compile(model, CONFIGS[0], batch=BATCH, strict=True, effort=0)
    with openmxu.open_device("interpreter", CONFIGS[0]) as device:
        ours = program.run(device, values)["y"]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1.01 * CONSTANTS["y_scale"])


REFUSED: Mapping[str, tuple[list[onnx.NodeProto], str, str, dict[str, NDArray[np.generic]]]] = {
    "zero point": (
        [dequantize("x"), quantize("x_real", "y", "y")],
        "int16",
        r"node 'y' \(QuantizeLinear\): the zero point of int16 must be 0, not 3",
        {"y_zero_point": np.int16(3)},
    ),
    "zero point of a constant": (
        [dequantize("x"), dequantize("k"), node("Mul", "k_real x_real", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 's' \(Mul\): .*|node 'k_real' \(DequantizeLinear\): the zero point of int16 must be 0",
        {"k_zero_point": np.int16(3)},
    ),
    "function": (
        [dequantize("x"), node("Sigmoid", "x_real", "s"), quantize("s", "y", "b")],
        "int8",
        r"node 's' \(Sigmoid\): tables have 256 entries, for bytes: quantize int16 to int8 or uint8",
        {},
    ),
    "maximum with a number": (
        [dequantize("x"), node("Max", "x_real limit", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 's' \(Max\): tables have 256 entries, for bytes",
        {},
    ),
    "function to int16": (
        [dequantize("b"), node("Sigmoid", "b_real", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 'y' \(QuantizeLinear\): tables have entries of one byte",
        {},
    ),
    "number": (
        [dequantize("x"), node("Mul", "x_real limit", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 's' \(Mul\): int16 tensors are supported by Conv, Gemm and MatMul .* quantize to int8 or uint8",
        {},
    ),
    "weights": (
        [dequantize("x"), dequantize("w"), node("MatMul", "x_real w_real", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 's' \(MatMul\): the weights must be an int8 or uint8 constant",
        {"w": np.ones((COLUMNS, HIDDEN), np.int16), "w_scale": np.float32(1), "w_zero_point": np.int16(0)},
    ),
    "factors of channels": (
        [dequantize("b"), node("Mul", "b_real factors", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 'y' \(QuantizeLinear\): behind factors and offsets of a tensor's channels, supported are int8 and uint8",
        {"factors": np.linspace(1, 2, COLUMNS, dtype=np.float32)},
    ),
    "sums": (
        [dequantize("x"), dequantize("w"), node("MatMul", "x_real w_real", "s"), quantize("s", "y", "y")],
        "int16",
        r"node 's' \(MatMul\): sums of int16 inputs must stay below 2\*\*31, but those of column 2 may reach "
        r"2,151,514,112, .* smaller integers as weights or fewer inputs",
        {
            "w": np.pad(np.full((517, 1), 127, np.int8), ((0, 0), (2, 0))),
            "w_scale": np.float32(1),
            "w_zero_point": np.int8(0),
        },
    ),
    "bias": (
        [*LAYER, dequantize("c", axis=0), node("Add", "s c_real", "a"), quantize("a", "y", "y")],
        "int16",
        r"node 'a' \(Add\): sums of int16 inputs must stay below 2\*\*31, but those of column 4 may reach",
        {"c": np.eye(HIDDEN, dtype=np.int32)[4] * np.int32(2**31 - 30_000_000)},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    nodes, dtype, message, values = REFUSED[case]
    columns = {"x": len(values["w"])} if "w" in values else {}
    with pytest.raises(openmxu.UnsupportedOperatorError, match=message):
        openmxu.compile(model_of(nodes, dtype, columns, **values), openmxu.Config(), strict=True)


def test_the_largest_sums_that_fit() -> None:
    nodes = [dequantize("x"), dequantize("w"), node("MatMul", "x_real w_real", "s"), quantize("s", "y", "y")]
    weights = np.full((516, 2), 127, np.int8) * np.array([1, -1], np.int8)
    values = {"w": weights, "w_scale": np.float32(2**-10), "w_zero_point": np.int8(0), "x_scale": np.float32(2**-8)}
    model = model_of(nodes, "int16", {"x": 516}, **values)
    inputs = np.array([[-32768] * 516, [32767] * 516], np.int16)
    program = openmxu.compile(model, CONFIGS[1], batch=2, strict=True, effort=0)
    with openmxu.open_device("interpreter", CONFIGS[1]) as device:
        result = program.run(device, inputs)["y"]
    real = inputs.astype(float) @ weights * 2.0**-18 / float(CONSTANTS["y_scale"])
    np.testing.assert_array_equal(result, np.clip(np.rint(real), -32768, 32767))


def test_the_host_computes_what_might_not_fit() -> None:
    """A layer with large sums in front of one that fits."""
    large = np.full((COLUMNS, COLUMNS), 127, np.int8)
    bias = np.full(COLUMNS, 2_100_000_000, np.int32)
    nodes = [
        *(dequantize("x"), dequantize("u"), dequantize("o")),
        node("Gemm", "x_real u_real o_real", "sums"),
        quantize("sums", "words", "m"),
        *(dequantize("words", "m"), WEIGHTS),
        node("MatMul", "words_real w_real", "s"),
        quantize("s", "y", "y"),
    ]
    values = {"u": large, "o": bias, "o_scale": np.float32(1e-5), "o_zero_point": np.int32(0)}
    model = model_of(nodes, "int16", **values)
    inputs = inputs_of(model)
    program = openmxu.compile(model, openmxu.Config(), batch=BATCH, effort=0)
    assert [layer.name for layer in program.layers] == ["s"]
    with openmxu.open_device("interpreter", openmxu.Config()) as device:
        ours = program.run(device, inputs)["y"]
    (theirs,) = reference_outputs(model, inputs, optimize=False).values()
    assert abs(ours.astype(int) - theirs).max() <= 1


def test_rows_pass_the_array_twice() -> None:
    active = []
    for form in ("MatMul of bytes", "MatMul"):
        program = openmxu.compile(model_of(*FORMS[form]), openmxu.Config(), batch=64, effort=0)
        active.append(predict(program.instructions, program.config).array_active)
        assert openmxu.report(program).layers[0].busy["array"] == active[-1]
    tiles = -(-COLUMNS // 8) * -(-HIDDEN // 8)
    assert active == [64 * tiles, 2 * 64 * tiles]
