"""Sums and products of two tensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.graph import Graph, Quantization, Tensor
from scripts.random_models.models import random_bytes

__all__ = ["combine", "combined"]


_FUNCTIONS = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}


def combine(graph: Graph, operator: str) -> Tensor:
    """``Add``, ``Sub`` or ``Mul`` of two tensors, each the input, a convolution of it, another input or a constant."""
    makers = (_convolved, _convolved, _another_input, _constant, _smaller_input)
    operands = [graph.input, makers[graph.between(0, 4)](graph)]
    if graph.chance(0.3):
        operands[0] = _convolved(graph)
    if graph.chance(0.5):
        operands.reverse()
    return combined(graph, operator, operands)


def combined(graph: Graph, operator: str, operands: list[Tensor]) -> Tensor:
    """``Add``, ``Sub`` or ``Mul`` of two tensors of one type."""
    real = _FUNCTIONS[operator](operands[0].real, operands[1].real)
    if operator == "Add" and graph.chance(0.2):
        return _limited_sum(graph, operands, real)
    result = graph.fit(real, operands[0].dtype)
    form = "around" if operator == "Sub" else ("quantized", "around")[graph.between(0, 1)]
    name = getattr(graph, form)(operator, operands, result)
    return graph.tensor(name, result, operator, "QDQ" if form == "around" else "QLinear")


def _limited_sum(graph: Graph, operands: list[Tensor], real: NDArray[np.float64]) -> Tensor:
    """Add and Relu, as at the end of a residual block; the smallest byte means 0."""
    dtype = operands[0].dtype
    scale = graph.scale(max(np.quantile(real, 0.95), 0.01 * np.abs(real).max(), 1e-6) / 240)
    result = Quantization(dtype, np.float32(scale), int(np.iinfo(dtype).min))
    sums = graph.add("Add", [graph.dequantize(item) for item in operands])
    return graph.tensor(graph.quantize(graph.add("Relu", [sums]), result), result, "Add Relu QDQ")


def _convolved(graph: Graph) -> Tensor:
    return convolve(graph, graph.input, FORMS[graph.between(0, 1)], same_shape=True)


def _another_input(graph: Graph) -> Tensor:
    return graph.new_input(graph.input.shape, graph.input.dtype, graph.between(0, 255))


def _smaller_input(graph: Graph) -> Tensor:
    """One value for each channel, or for each position."""
    batch, channels, *plane = graph.input.shape
    shape = (batch, channels, *(1 for _ in plane)) if graph.chance(0.5) else (batch, 1, *plane)
    return graph.new_input(shape, graph.input.dtype, graph.between(0, 255))


def _constant(graph: Graph) -> Tensor:
    """A constant in the shape of the input without its batch, or with one value for each channel."""
    _, channels, *plane = graph.input.shape
    shape = (1, channels, *(plane if graph.chance(0.5) else (1 for _ in plane)))
    values = random_bytes(graph.random, graph.input.dtype, shape)
    quantization = graph.any_quantization(graph.input.dtype, graph.between(0, 255))
    return Tensor(graph.constant(values), values, quantization)
