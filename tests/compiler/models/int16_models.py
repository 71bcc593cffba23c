"""Small graphs of int16 tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from scripts.random_models import make_model, random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize

BATCH, COLUMNS, HIDDEN = 5, 21, 13
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
