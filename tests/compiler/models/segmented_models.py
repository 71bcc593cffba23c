"""Models with work for the host between layers of the device."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx

from tests.compiler.models.graphs import constants, dequantize, followed, layer, model, node, quantize

VALUES = constants(np.random.default_rng(0)) | {
    "r": np.random.default_rng(1).normal(size=(30, 30)).astype(np.float32),
    "half": np.float32(0.5),
}


def between_layers() -> onnx.ModelProto:
    """Softmax between two layers."""
    return model(followed(layer(node("Softmax", "sums", "soft"), last="soft", output="z")), VALUES)


def around() -> onnx.ModelProto:
    """The second layer's input is added to what the host makes of it: device, host, and the device with both."""
    nodes = [
        *layer(output="h"),
        dequantize("h"),
        node("Softmax", "h_real", "soft"),
        quantize("soft", "s", "h"),
        node("DequantizeLinear", "s h_scale h_zero_point", "s_real"),
        node("Add", "h_real s_real", "sum"),
        quantize("sum", "t", "h"),
        node("DequantizeLinear", "t h_scale h_zero_point", "t_real"),
        dequantize("v"),
        node("MatMul", "t_real v_real", "again"),
        quantize("again", "y", "y"),
    ]
    return model(nodes, VALUES)


def real_weights() -> onnx.ModelProto:
    """A product with real weights between two layers, which only the host can compute."""
    nodes = [*layer(output="h"), dequantize("h"), node("MatMul", "h_real r", "wide"), quantize("wide", "t", "h")]
    nodes += [node("DequantizeLinear", "t h_scale h_zero_point", "t_real"), dequantize("v")]
    return model([*nodes, node("MatMul", "t_real v_real", "again"), quantize("again", "y", "y")], VALUES)


def idle() -> onnx.ModelProto:
    """Something that the device could do between two nodes of the host, and a layer in front."""
    nodes = [
        *layer(output="h"),
        dequantize("h"),
        node("Softmax", "h_real", "soft"),
        quantize("soft", "s", "h"),
        node("DequantizeLinear", "s h_scale h_zero_point", "s_real"),
        node("Relu", "s_real", "relu"),
        quantize("relu", "t", "h"),
        node("DequantizeLinear", "t h_scale h_zero_point", "t_real"),
        node("Softmax", "t_real", "y"),
    ]
    return model(nodes, VALUES, ("uint8", "float32"))


def residual(other: str) -> onnx.ModelProto:
    """What the host makes between two layers, or the first layer's result, added behind the second one for the host."""
    nodes = [
        *layer(output="h"),
        dequantize("h"),
        node("Softmax", "h_real", "soft"),
        quantize("soft", "s", "h"),
        node("DequantizeLinear", "s h_scale h_zero_point", "s_real"),
        dequantize("v"),
        node("MatMul", "s_real v_real", "again"),
        quantize("again", "t", "y"),
        node("DequantizeLinear", "t y_scale y_zero_point", "t_real"),
        node("Add", f"t_real {other}_real", "sum"),
        quantize("sum", "u", "y"),
        node("DequantizeLinear", "u y_scale y_zero_point", "u_real"),
        node("Softmax", "u_real", "y"),
    ]
    return model(nodes, VALUES, ("uint8", "float32"))


MODELS = {
    "between layers": between_layers,
    "around": around,
    "real weights": real_weights,
    "idle": idle,
    "residual": partial(residual, "s"),
}
