"""int16 tensors: matrix products with int8 weights, and sums and products of two tensors, of which one may be int8."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from scripts.random_models.graph import Case
from scripts.random_models.models import make_model, random_bytes, reference
from scripts.random_models.shapes import log_uniform

__all__ = ["WORD_OPERATORS", "word_case"]

WORD_OPERATORS = ("Gemm", "Add", "Mul", "Sub")

_LARGEST = 120
"""Length of a dimension: with it all sums fit, whatever the inputs are."""
_OPSET = 21


def word_case(random: np.random.Generator, operator: str) -> Case:
    """A model of one ``operator``; the first input is int16, and the result int16, int8 or uint8."""
    rows, columns, outputs = (log_uniform(random, _LARGEST) for _ in range(3))
    kinds = {"x": "int16", "y": str(random.choice(["int16", "int8", "uint8"]))}
    values = {"x": random.integers(-32768, 32768, (rows, columns)).astype(np.int16)}
    constants: dict[str, NDArray[np.generic]] = {}
    x_scale, other_scale = (10.0 ** random.uniform(-5, -1) for _ in range(2))
    if operator == "Gemm":
        weights = random_bytes(random, "int8", (columns, outputs))
        # A bias that is a multiple of what a sum of 1 means.
        bias = random.integers(-(2**20), 2**20, outputs) * np.float32(x_scale) * np.float32(other_scale)
        constants = {"z": weights, "bias": bias.astype(np.float32)}
        kinds["z"], real = "int8", values["x"] @ weights.astype(np.float64) * x_scale * other_scale
        ports = [("x", "int16", (columns,))]
    else:
        outputs = columns
        kinds["z"] = str(random.choice(["int16", "int8"]))
        limits = np.iinfo(kinds["z"])
        values["z"] = random.integers(limits.min, limits.max + 1, (rows, columns)).astype(kinds["z"])
        if operator != "Mul":  # of the same size as the other one
            other_scale = x_scale * 32768 / limits.max * random.uniform(0.3, 3)
        pair = values["x"] * x_scale, values["z"] * other_scale
        real = pair[0] * pair[1] if operator == "Mul" else np.abs(pair[0]) + np.abs(pair[1])
        ports = [(name, kinds[name], (columns,)) for name in "xz"]
    limits = np.iinfo(kinds["y"])
    y_scale = max(float(np.abs(real).max()), 1e-6) / (limits.max - limits.min) * random.uniform(0.5, 4)
    for name, scale in {"x": x_scale, "z": other_scale, "y": y_scale}.items():
        constants[f"{name}_scale"] = np.float32(scale)
        zero_point = 0 if kinds[name] == "int16" else random_bytes(random, kinds[name], ())
        constants[f"{name}_zero_point"] = np.asarray(0 if name in constants else zero_point, kinds[name])
    reals = [
        helper.make_node("DequantizeLinear", [name, f"{name}_scale", f"{name}_zero_point"], [f"{name}_real"])
        for name in "xz"
    ]
    inputs = ["x_real", "z_real", *(["bias"] if operator == "Gemm" else [])]
    node = helper.make_node(operator, inputs, ["y_real"])
    quantize = helper.make_node("QuantizeLinear", ["y_real", "y_scale", "y_zero_point"], ["y"])
    model = make_model([*reals, node, quantize], constants, ports, ("y", kinds["y"], (outputs,)), _OPSET)
    text = f"{operator} of int16 {rows}×{columns}×{outputs} and {kinds['z']} to {kinds['y']}"
    # Its optimizer makes MatMulNBits of products, which rounds activations to bytes.
    return Case(model, values, reference(model, values, optimize=False), text, is_optimized=False)
