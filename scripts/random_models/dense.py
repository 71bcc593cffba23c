"""Matrix products: QLinearMatMul, MatMulInteger, and Gemm between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from scripts.random_models.graph import Case, Graph, Tensor
from scripts.random_models.models import make_model, random_bytes, reference

__all__ = ["LARGEST", "OPERATORS", "dense_case", "multiply_rows"]

OPERATORS = ("QLinearMatMul", "MatMulInteger", "Gemm")
LARGEST = 150
"""Length of a dimension."""


def dense_case(random: np.random.Generator, operator: str, shape: tuple[int, int, int], opset: int = 21) -> Case:
    """A model of one ``operator`` for M × K by K × N; everything but the operator and the shape is random."""
    m, k, n = shape
    input_type, weight_type = (str(random.choice(["uint8", "int8"])) for _ in range(2))
    if operator != "MatMulInteger" and input_type == "int8":
        weight_type = "int8"  # ONNX Runtime has no integer kernel for int8 by uint8 here
    per_column = bool(random.integers(2))
    channels = (n,) if per_column else ()
    text = f"{operator} {m}×{k}×{n} {input_type}×{weight_type} {'per column' if per_column else 'per tensor'}"
    constants: dict[str, NDArray[np.generic]] = {
        "w": random_bytes(random, weight_type, (k, n)),
        "w_zero_point": random_bytes(random, weight_type, channels),
        "x_zero_point": random_bytes(random, input_type, ()),
    }
    output_type = input_type
    if operator == "MatMulInteger":
        output_type = "int32"
        nodes = [helper.make_node(operator, ["x", "w", "x_zero_point", "w_zero_point"], ["y"])]
    else:
        constants |= _scales(random, k, channels)
        constants["y_zero_point"] = random_bytes(random, output_type, ())
        if operator == "QLinearMatMul":
            names = ["x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point"]
            nodes = [helper.make_node(operator, names, ["y"])]
        else:
            unit = (constants["x_scale"] * constants["w_scale"]).astype(np.float32)
            constants["b"] = random.integers(-(2**16), 2**16, n).astype(np.int32)
            constants["b_scale"], constants["b_zero_point"] = unit, np.zeros(channels, np.int32)
            nodes = [_dequantize("x", 1), _dequantize("w", 1), _dequantize("b", 0)]
            nodes.append(helper.make_node("Gemm", ["x_real", "w_real", "b_real"], ["y_real"]))
            nodes.append(helper.make_node("QuantizeLinear", ["y_real", "y_scale", "y_zero_point"], ["y"]))
    model = make_model(nodes, constants, [("x", input_type, (k,))], ("y", output_type, (n,)), opset)
    values = random_bytes(random, input_type, (m, k))
    return Case(model, {"x": values}, reference(model, values), text)


def multiply_rows(graph: Graph, source: Tensor) -> Tensor:
    """QLinearMatMul, or MatMul between DequantizeLinear and QuantizeLinear, of the last dimension."""
    columns = graph.between(1, 60)
    weights = random_bytes(graph.random, "int8", (source.shape[-1], columns))
    scale, zero_point = graph.scale(graph.random.uniform(0.002, 0.02)), np.asarray(0, np.int8)
    real = (source.values - float(source.quantization.zero_point)) @ weights.astype(np.float64)
    result = graph.fit(real * float(source.quantization.scale) * float(scale), source.dtype)
    parts = [graph.constant(array) for array in (weights, scale, zero_point)]
    if graph.chance(0.5):
        inputs = [source.name, *graph.parameters(source.quantization), *parts, *graph.parameters(result)]
        return graph.tensor(graph.add("QLinearMatMul", inputs), result, "QLinearMatMul", columns)
    product = graph.add("MatMul", [graph.dequantize(source), graph.add("DequantizeLinear", parts)])
    return graph.tensor(graph.quantize(product, result), result, "MatMul", columns)


def _scales(random: np.random.Generator, inputs: int, channels: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    """Scales with which outputs fill the range of a byte, or saturate, or are few different numbers."""
    x_scale, w_scale = random.uniform(1e-4, 1e-1), random.uniform(1e-4, 1e-1, channels)
    spread = 10.0 ** random.uniform(-0.5, 1) * 100 * 100 * np.sqrt(inputs) / 64
    y_scale = x_scale * float(np.mean(w_scale)) * spread
    return {
        "x_scale": np.float32(x_scale),
        "w_scale": np.asarray(w_scale, np.float32),
        "y_scale": np.float32(y_scale),
    }


def _dequantize(name: str, axis: int) -> onnx.NodeProto:
    return helper.make_node(
        "DequantizeLinear", [name, f"{name}_scale", f"{name}_zero_point"], [f"{name}_real"], axis=axis
    )
