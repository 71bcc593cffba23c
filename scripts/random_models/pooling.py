"""Maximum and average pooling over windows and whole planes."""

from __future__ import annotations

import numpy as np

from scripts.random_models.graph import Graph, Tensor
from scripts.random_models.shapes import random_window

__all__ = ["average_pool", "global_average_pool", "global_max_pool", "max_pool", "reduce_mean"]


def max_pool(graph: Graph, source: Tensor) -> Tensor:
    """MaxPool of bytes, or between DequantizeLinear and QuantizeLinear."""
    window = random_window(graph.random, source.shape[2:], 4, automatic=graph.varies)
    attributes: dict[str, object] = dict(window.attributes())
    if window.may_round_up(source.shape[2:]) and graph.chance(0.2):
        attributes["ceil_mode"] = 1
    if graph.chance(0.6):
        name, form = graph.add("MaxPool", [source.name], **attributes), "bytes"
    else:
        name, form = graph.around("MaxPool", [source], source.quantization, **attributes), "QDQ"
    return graph.tensor(name, source.quantization, "MaxPool", form, *_words(attributes))


def average_pool(graph: Graph, source: Tensor) -> Tensor:
    """QLinearAveragePool, or AveragePool between DequantizeLinear and QuantizeLinear."""
    window = random_window(graph.random, source.shape[2:], 4, automatic=graph.varies)
    attributes = {**window.attributes(), **({"count_include_pad": 1} if graph.chance(0.3) else {})}
    return _averaged(graph, source, "AveragePool", int(np.prod(window.kernel)), attributes)


def global_average_pool(graph: Graph, source: Tensor) -> Tensor:
    """QLinearGlobalAveragePool, or GlobalAveragePool between DequantizeLinear and QuantizeLinear."""
    return _averaged(graph, source, "GlobalAveragePool", int(np.prod(source.shape[2:])), {})


def global_max_pool(graph: Graph, source: Tensor) -> Tensor:
    """GlobalMaxPool between DequantizeLinear and QuantizeLinear, which may have another scale."""
    result = source.quantization
    real = graph.add("GlobalMaxPool", [graph.dequantize(source)])
    if graph.chance(0.5):
        result = graph.fit(graph.run_real(real), source.dtype)
    words = () if result == source.quantization else ("requantized",)
    return graph.tensor(graph.quantize(real, result), result, "GlobalMaxPool", *words)


def reduce_mean(graph: Graph, source: Tensor) -> Tensor:
    """ReduceMean of planes, or of all but the last dimension, between DequantizeLinear and QuantizeLinear."""
    axes = list(range(2, len(source.shape)))
    if graph.chance(0.3):
        axes = list(range(1, len(source.shape) - 1))
    attributes = {} if graph.chance(0.5) else {"keepdims": graph.between(0, 1)}
    real = graph.add("ReduceMean", [graph.dequantize(source), graph.constant(np.array(axes))], **attributes)
    result = graph.fit(graph.run_real(real), source.dtype)
    return graph.tensor(graph.quantize(real, result), result, "ReduceMean", axes, *_words(attributes))


def _averaged(graph: Graph, source: Tensor, operator: str, count: int, attributes: dict[str, object]) -> Tensor:
    mean, deviation = source.real.mean(), source.real.std()
    samples = mean + deviation / np.sqrt(count) * graph.random.standard_normal(1000)
    # ONNX Runtime refuses averages of planes that would be multiplied by 256 or more.
    result = graph.fit(samples, source.dtype, least=float(source.quantization.scale) / (64 * count))
    form = ("quantized", "around")[graph.between(0, 1)]
    name = getattr(graph, form)(operator, [source], result, **attributes)
    return graph.tensor(name, result, operator, "QDQ" if form == "around" else "QLinear", *_words(attributes))


def _words(attributes: dict[str, object]) -> list[str]:
    return [f"{name} {value}" for name, value in attributes.items()]
