"""int16 tensors: exact integers on the device, and ONNX Runtime's results to within one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import openmxu
from openmxu.compiler import import_model
from openmxu.sim.cycle_model import predict
from scripts.random_models import make_model, random_bytes, reference_outputs
from tests.compiler.models.graphs import dequantize, node, quantize

BATCH, COLUMNS, HIDDEN = 5, 21, 13
CONFIGS = [openmxu.Config.for_size(size) for size in (4, 16)]
INPUTS = {"x": "int16", "z": "int16", "b": "int8"}


def _constants() -> dict[str, NDArray[np.generic]]:
    random = np.random.default_rng(0)
    columns = random.uniform(0.004, 0.02, HIDDEN).astype(np.float32)
    scales = {"x": 0.001, "z": 0.0017, "b": 0.02, "y": 0.003, "k": 0.0009, "n": 0.3, "m": 0.06, "v": 0.011}
    zero_points = {name: np.int16(0) for name in "xzykm"}
    zero_points |= {"b": np.int8(5), "n": np.uint8(131), "v": np.uint8(120)}
    return {
        **{f"{name}_scale": np.float32(scale) for name, scale in scales.items()},
        **{f"{name}_zero_point": value for name, value in zero_points.items()},
        "k": random.integers(-32768, 32768, COLUMNS).astype(np.int16),
        "w": random.integers(-128, 128, (COLUMNS, HIDDEN)).astype(np.int8),
        "w_scale": columns,
        "w_zero_point": np.zeros(HIDDEN, np.int8),
        "t": random.integers(-128, 128, (2 * COLUMNS, HIDDEN)).astype(np.int8),
        "c": random.integers(-2_000_000, 2_000_000, HIDDEN).astype(np.int32),
        "c_scale": np.float32(0.001) * columns,
        "c_zero_point": np.zeros(HIDDEN, np.int32),
        "v": random_bytes(random, "uint8", (COLUMNS, HIDDEN)),
        "u": random.integers(-100, 101, (COLUMNS, COLUMNS)).astype(np.int8),
        "u_scale": np.float32(0.01),
        "u_zero_point": np.int8(0),
        "limit": np.float32(60),
        "zero": np.float32(0),
        "square": np.array([0, 6, 7]),
        "flat": np.array([0, -1]),
    }


CONSTANTS = _constants()
WEIGHTS = dequantize("w", axis=1)
LAYER = [dequantize("x"), WEIGHTS, node("MatMul", "x_real w_real", "s")]
BOTH = [dequantize("x"), dequantize("z")]
MADE = [
    dequantize("b"),
    dequantize("u"),
    node("MatMul", "b_real u_real", "made_sums"),
    quantize("made_sums", "made", "x"),
]
"""Elements of inputs would be moved by the host."""
JOINED = [dequantize("t", "w", axis=1), node("MatMul", "joined_real t_real", "s"), quantize("s", "y", "y")]

FORMS: Mapping[str, tuple[list[onnx.NodeProto], str]] = {
    "MatMul": ([*LAYER, quantize("s", "y", "y")], "int16"),
    "MatMul to bytes": ([*LAYER, quantize("s", "y", "n")], "uint8"),
    "MatMul of bytes": (
        [dequantize("b"), WEIGHTS, node("MatMul", "b_real w_real", "s"), quantize("s", "y", "y")],
        "int16",
    ),
    "MatMul, uint8 weights": (
        [dequantize("x"), dequantize("v"), node("MatMul", "x_real v_real", "s"), quantize("s", "y", "y")],
        "int16",
    ),
    "Gemm, Clip": (
        [
            *LAYER[:2],
            dequantize("c", axis=0),
            node("Gemm", "x_real w_real c_real", "s"),
            node("Clip", "s zero limit", "r"),
            quantize("r", "y", "y"),
        ],
        "int16",
    ),
    "MatMul, bias, Relu": (
        [
            *LAYER,
            dequantize("c", axis=0),
            node("Add", "s c_real", "a"),
            node("Relu", "a", "r"),
            quantize("r", "y", "y"),
        ],
        "int16",
    ),
    "product": ([*BOTH, node("Mul", "x_real z_real", "s"), quantize("s", "y", "m")], "int16"),
    "product with bytes": (
        [dequantize("x"), dequantize("b"), node("Mul", "b_real x_real", "s"), quantize("s", "y", "n")],
        "uint8",
    ),
    "product with a constant": (
        [dequantize("x"), dequantize("k"), node("Mul", "k_real x_real", "s"), quantize("s", "y", "y")],
        "int16",
    ),
    "product of bytes": (
        [dequantize("b"), node("Mul", "b_real b_real", "s"), quantize("s", "y", "y")],
        "int16",
    ),
    "sum": ([*BOTH, node("Add", "x_real z_real", "s"), quantize("s", "y", "y")], "int16"),
    "sum with bytes": (
        [dequantize("x"), dequantize("b"), node("Add", "b_real x_real", "s"), quantize("s", "y", "y")],
        "int16",
    ),
    "difference": (
        [*BOTH, node("Sub", "z_real x_real", "s"), node("Relu", "s", "r"), quantize("r", "y", "y")],
        "int16",
    ),
    "difference of a constant": (
        [dequantize("x"), dequantize("k"), node("Sub", "k_real x_real", "s"), quantize("s", "y", "n")],
        "uint8",
    ),
    "to bytes": ([dequantize("x"), quantize("x_real", "y", "n")], "uint8"),
    "from bytes": ([dequantize("b"), quantize("b_real", "y", "y")], "int16"),
    "another scale": ([dequantize("x"), quantize("x_real", "y", "y")], "int16"),
    "limits": (
        [dequantize("x"), node("Relu", "x_real", "r"), node("Clip", "r zero limit", "l"), quantize("l", "y", "y")],
        "int16",
    ),
    "limits of other elements": (
        [
            *MADE,
            node("Concat", "made x", "both", axis=1),
            dequantize("both", "x"),
            node("Relu", "both_real", "r"),
            quantize("r", "y", "n"),
        ],
        "uint8",
    ),
    "a function, by way of bytes": (
        [
            dequantize("x"),
            quantize("x_real", "x8", "n"),
            dequantize("x8", "n"),
            node("Sigmoid", "x8_real", "s"),
            quantize("s", "y", "b"),
        ],
        "int8",
    ),
    "Concat": (
        [*MADE, node("Concat", "made x", "joined", axis=1), dequantize("joined", "x"), *JOINED],
        "int16",
    ),
    "Concat of several types": (
        [
            *MADE,
            dequantize("made", "x"),
            node("Concat", "made_real b_real", "both", axis=1),
            quantize("both", "joined", "y"),
            dequantize("joined", "y"),
            *JOINED,
        ],
        "int16",
    ),
    "other order": (
        [
            *MADE,
            node("Concat", "made x", "both", axis=1),
            node("Reshape", "both square", "rows"),
            node("Transpose", "rows", "turned", perm=[0, 2, 1]),
            node("Reshape", "turned flat", "joined"),
            dequantize("joined", "x"),
            node("Add", "joined_real joined_real", "s"),
            quantize("s", "y", "y"),
        ],
        "int16",
    ),
}
"""Nodes from x, z and b to y, and the type of y."""


def model_of(
    nodes: Sequence[onnx.NodeProto], dtype: str, columns: Mapping[str, int] | None = None, **values: NDArray[np.generic]
) -> onnx.ModelProto:
    """A model of nodes to y, of type ``dtype``; ``columns`` of inputs that have other ones, ``values`` of constants."""
    used = {name for item in nodes for name in item.input}
    ports = [(name, kind, ((columns or {}).get(name, COLUMNS),)) for name, kind in INPUTS.items() if name in used]
    constants = {name: array for name, array in {**CONSTANTS, **values}.items() if name in used}
    return make_model(nodes, constants, ports, ("y", dtype, ("columns",)))


def inputs_of(model: onnx.ModelProto, largest: int = 32767, batch: int = BATCH) -> dict[str, NDArray[np.integer]]:
    """Random inputs; int16 ones are up to ``largest``, and have the extreme values in the first row."""
    random = np.random.default_rng(7)
    given = {}
    for item in model.graph.input:
        kind = item.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        limit = min(largest, np.iinfo(dtype).max)
        shape = [batch, *(dim.dim_value for dim in kind.shape.dim[1:])]
        given[item.name] = random.integers(-limit - 1, limit + 1, shape).astype(dtype)
        given[item.name].reshape(-1)[:2] = -limit - 1, limit
    return given


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


def convolutions() -> onnx.ModelProto:
    """An image through a convolution, two for each channel, maxima in front and behind, and a matrix product."""
    random = np.random.default_rng(3)
    constants = {name: array for name, array in CONSTANTS.items() if name.startswith(("x_", "y_", "n_"))}
    for name, shape in {"f": (6, 3, 3, 3), "g": (6, 1, 3, 3), "p": (12, 7)}.items():
        constants |= {
            name: random.integers(-100, 101, shape).astype(np.int8),
            f"{name}_scale": np.float32(0.004),
            f"{name}_zero_point": np.int8(0),
        }
    nodes = [
        *(dequantize(name) for name in ("x", "f", "g", "p")),
        node("Conv", "x_real f_real", "a", pads=[1, 1, 1, 1], strides=[2, 1]),
        node("Relu", "a", "a_limited"),
        quantize("a_limited", "b", "y"),
        dequantize("b", "y"),
        node("Conv", "b_real g_real", "c", group=6, pads=[1, 0, 1, 0]),
        quantize("c", "d", "y"),
        dequantize("d", "y"),
        node("MaxPool", "d_real", "e", kernel_shape=[2, 2], strides=[1, 1]),
        node("Conv", "e g_real", "h", group=6, pads=[1, 1, 1, 1]),
        node("MaxPool", "h", "h_maximum", kernel_shape=[2, 2], strides=[2, 2]),
        quantize("h_maximum", "i", "y"),
        node("Flatten", "i", "j"),
        dequantize("j", "y"),
        node("MatMul", "j_real p_real", "s"),
        quantize("s", "y", "y"),
    ]
    return make_model(nodes, constants, [("x", "int16", (3, 9, 6))], ("y", "int16", (7,)))


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


def test_results_on_the_rtl() -> None:
    models = [*(model_of(*form) for form in FORMS.values()), convolutions()]
    with openmxu.open_device("verilator", openmxu.Config()) as device:
        for model in models:
            inputs = inputs_of(model)
            program = openmxu.compile(model, openmxu.Config(), batch=BATCH, strict=True, effort=0)
            np.testing.assert_array_equal(program.run(device, inputs)["y"], import_model(model).evaluate(inputs)["y"])
