"""Small ONNX graphs of quantized layers, and their constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from scripts.random_models import make_model, random_bytes

INPUTS, OUTPUTS = 50, 30


def node(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    """A node named after its output; the input ``-`` is omitted."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(operator, names, [output], name=output, **attributes)


def dequantize(name: str, parameters: str = "", **attributes: object) -> onnx.NodeProto:
    """Dequantize ``name`` to ``name_real``, with the scale and zero point of ``parameters``."""
    parameters = parameters or name
    return node("DequantizeLinear", f"{name} {parameters}_scale {parameters}_zero_point", f"{name}_real", **attributes)


def quantize(source: str, output: str, parameters: str) -> onnx.NodeProto:
    """Quantize ``source`` to ``output``, with the scale and zero point of ``parameters``."""
    return node("QuantizeLinear", f"{source} {parameters}_scale {parameters}_zero_point", output)


def constants(random: np.random.Generator, dtype: str = "uint8", per_column: bool = False) -> dict[str, np.ndarray]:
    """Weights ``w`` and ``v``, bias ``b``, and the quantization parameters of all tensors."""
    channels = (OUTPUTS,) if per_column else ()
    x_scale = np.float32(0.013)
    w_scale = np.asarray(random.uniform(0.004, 0.02, channels), np.float32)
    return {
        "x_scale": x_scale,
        "x_zero_point": random_bytes(random, dtype, ()),
        "w": random_bytes(random, "int8", (INPUTS, OUTPUTS)),
        "w_scale": w_scale,
        "w_zero_point": random_bytes(random, "int8", channels),
        "b": random.integers(-20_000, 20_000, OUTPUTS).astype(np.int32),
        "b_scale": (x_scale * w_scale).astype(np.float32),
        "b_zero_point": np.zeros(channels, np.int32),
        "h_scale": np.float32(0.37),
        "h_zero_point": random_bytes(random, dtype, ()),
        "v": random_bytes(random, "int8", (OUTPUTS, OUTPUTS)),
        "v_scale": np.float32(0.011),
        "v_zero_point": random_bytes(random, "int8", ()),
        "y_scale": np.float32(1.7),
        "y_zero_point": random_bytes(random, dtype, ()),
    }


def layer(*middle: onnx.NodeProto, last: str = "sums", output: str = "y") -> list[onnx.NodeProto]:
    """MatMul of x and w to ``sums``, then ``middle``, and QuantizeLinear of tensor ``last`` with the scale of h."""
    product = node("MatMul", "x_real w_real", "sums")
    return [dequantize("x"), dequantize("w"), product, *middle, quantize(last, output, "h")]


def followed(nodes: Sequence[onnx.NodeProto], name: str = "z") -> list[onnx.NodeProto]:
    """``nodes``, whose quantized output is ``name``, followed by a layer, so that the host cannot compute ``nodes``."""
    return [
        *nodes,
        node("QLinearMatMul", f"{name} h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y"),
    ]


def model(
    nodes: Sequence[onnx.NodeProto],
    values: dict[str, np.ndarray],
    types: tuple[str, str] = ("uint8", "uint8"),
    columns: tuple[int, int] = (INPUTS, OUTPUTS),
    opset: int = 21,
) -> onnx.ModelProto:
    """A model with an open batch, and those constants that its nodes use."""
    used = {name for item in nodes for name in item.input}
    constants_ = {name: array for name, array in values.items() if name in used}
    ports = [(name, dtype, (count,)) for name, dtype, count in zip("xy", types, columns, strict=True)]
    return make_model(nodes, constants_, ports[:1], ports[1], opset)
