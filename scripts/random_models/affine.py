"""Factors and offsets for each channel, between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scripts.random_models.convolution import real_convolution
from scripts.random_models.graph import Graph, Tensor

__all__ = ["affine", "normalize"]

_TYPES = ("uint8", "int8")


def normalize(graph: Graph, source: Tensor) -> Tensor:
    """BatchNormalization of a tensor, or of its convolution before that is quantized."""
    real, values, unit = _source(graph, source)
    channels = values.shape[1]
    scale, offset, mean = (_numbers(graph, channels, 1) for _ in range(3))
    # With a few equal values, only an offset would be left.
    spread = max(float(values.std()), 0.1 * float(np.abs(values).max()), 1e-3)
    mean = mean * spread + float(values.mean())
    variance = (spread**2 * graph.random.uniform(0.3, 3, channels)).astype(np.float32)
    names = [graph.constant(array) for array in (scale, offset, mean.astype(np.float32), variance)]
    attributes = {"epsilon": 1e-3} if graph.chance(0.3) else {}
    name = graph.add("BatchNormalization", [real, *names], **attributes)
    factor = np.abs(scale) / np.sqrt(variance + 1e-5)
    return _limited(graph, name, unit * float(factor.max()), "BatchNormalization")


def affine(graph: Graph, source: Tensor) -> Tensor:
    """One to three of Add, Sub, Mul and Div with constants for the channels."""
    real, values, unit = _source(graph, source)
    channels, words = values.shape[1], []
    for _ in range(graph.between(1, 3)):
        operator = ("Add", "Sub", "Mul", "Div")[graph.between(0, 3)]
        spread = float(np.abs(values).max()) if operator in ("Add", "Sub") else 1
        numbers = _numbers(graph, channels, spread)
        numbers = np.where(np.abs(numbers) < 0.05, np.float32(0.05), numbers)
        shape = [channels, *[1] * (values.ndim - 2)]
        constant = graph.constant(numbers.reshape([1, *shape] if graph.chance(0.5) else shape))
        first = operator != "Div" and graph.chance(0.3)
        real = graph.add(operator, [constant, real] if first else [real, constant])
        words.append(operator)
        if operator in ("Mul", "Div"):
            unit *= float(np.abs(numbers if operator == "Mul" else 1 / numbers).max())
    return _limited(graph, real, unit, *words)


def _source(graph: Graph, source: Tensor) -> tuple[str, NDArray[np.float64], float]:
    """A real tensor, its values, and the step between neighbouring values."""
    if graph.chance(0.5):
        return graph.dequantize(source), source.real, float(source.quantization.scale)
    return real_convolution(graph, source)


def _numbers(graph: Graph, channels: int, spread: float) -> NDArray[np.float32]:
    """Random numbers of both signs, one for each channel."""
    return (spread * graph.random.normal(size=channels)).astype(np.float32)


def _limited(graph: Graph, real: str, unit: float, *words: str) -> Tensor:
    """QuantizeLinear, sometimes after Relu; its steps are no finer than ``unit``, those of the tensor."""
    if graph.chance(0.3):
        real, words = graph.add("Relu", [real]), (*words, "Relu")
    result = graph.fit(graph.run_real(real), _TYPES[graph.between(0, 1)], least=unit)
    return graph.tensor(graph.quantize(real, result), result, *words)
