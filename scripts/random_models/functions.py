"""Functions of one byte: activation functions and limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.graph import Graph, Tensor
from scripts.random_models.models import make_model, reference

__all__ = ["FUNCTIONS", "OTHER_FUNCTIONS", "apply_function", "clip", "relu"]

FUNCTIONS = ("Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish")
OTHER_FUNCTIONS = ("Abs", "Elu", "Erf", "Exp", "Gelu", "Mish", "Neg", "Selu", "Softplus", "Softsign")
"""Functions whose float32 values in ONNX Runtime may depend on an element's place in the tensor."""
_QUANTIZED = ("Sigmoid", "LeakyRelu")
_TYPES = ("uint8", "int8")


def apply_function(graph: Graph, source: Tensor, operator: str) -> Tensor:
    """A function of every element: ONNX Runtime's quantized operator if there is one, or QDQ with any two types."""
    attributes: dict[str, float] = {}
    if operator in ("LeakyRelu", "HardSigmoid") and graph.chance(0.7):
        attributes["alpha"] = float(np.float32(graph.random.choice([0.01, 0.1, 0.125, 0.2, 0.25, 0.5])))
    if operator == "HardSigmoid" and graph.chance(0.5):
        attributes["beta"] = float(np.float32(graph.random.uniform(0.2, 0.8)))
    quantized = operator in _QUANTIZED and graph.chance(0.4)
    real = _real(operator, source.real.astype(np.float32), attributes)
    result = graph.fit(real, source.dtype if quantized else _TYPES[graph.between(0, 1)])
    make = graph.quantized if quantized else graph.around
    name = make(operator, [source], result, **attributes)
    words = [f"{name} {value:.6g}" for name, value in attributes.items()]
    return graph.tensor(name, result, operator, "QLinear" if quantized else "QDQ", *words, result.dtype)


def _real(operator: str, values: NDArray[np.float32], attributes: dict[str, float]) -> NDArray[np.float64]:
    """A function of real numbers, from which the scale of its result is derived."""
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    shape = values.shape[1:]
    return reference(make_model([node], {}, [("x", "float32", shape)], ("y", "float32", shape)), values).astype(
        np.float64
    )


def relu(graph: Graph) -> Tensor:
    """Relu after a convolution, between DequantizeLinear and QuantizeLinear, or of int8 integers."""
    source = graph.input
    choice = graph.random.random()
    if choice < 0.4:
        return convolve(graph, source, "Conv", limit="Relu")
    if choice < 0.5:
        source = convolve(graph, source, FORMS[graph.between(0, 1)])
    if source.dtype == "int8" and graph.chance(0.4):
        return graph.tensor(graph.add("Relu", [source.name]), source.quantization, "Relu of bytes")
    # If the smallest byte means 0, such a Relu would have no effect.
    same = source.quantization.zero_point > source.quantization.limits[0] and graph.chance(0.5)
    result = source.quantization if same else graph.fit(np.maximum(source.real, 0), _TYPES[graph.between(0, 1)])
    return graph.tensor(graph.around("Relu", [source], result), result, "Relu QDQ", result.dtype)


def clip(graph: Graph) -> Tensor:
    """Clip after a convolution, between DequantizeLinear and QuantizeLinear, or of bytes."""
    source = graph.input
    choice = graph.random.random()
    if choice < 0.4:
        return convolve(graph, source, "Conv", limit="Clip")
    if choice < 0.5:
        source = convolve(graph, source, FORMS[graph.between(0, 1)])
    low, high = source.quantization.limits
    first, last = low + graph.between(1, 100), high - graph.between(1, 100)
    if graph.chance(0.5):
        bounds = [graph.constant(np.asarray(bound, source.dtype)) for bound in (first, last)]
        name = graph.add("Clip", [source.name, *bounds])
        return graph.tensor(name, source.quantization, f"Clip of bytes to {first} … {last}")
    zero_point, scale = source.quantization.zero_point, source.quantization.scale
    reals = [np.float32((bound - zero_point) * float(scale) * 1.001) for bound in (first, last)]
    same = graph.chance(0.5)
    result = source.quantization if same else graph.fit(np.clip(source.real, *reals), _TYPES[graph.between(0, 1)])
    real = graph.add("Clip", [graph.dequantize(source), *(graph.constant(bound) for bound in reals)])
    return graph.tensor(graph.quantize(real, result), result, "Clip QDQ", result.dtype)
