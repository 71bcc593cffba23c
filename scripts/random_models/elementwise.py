"""Sums and products of two tensors."""

from __future__ import annotations

import numpy as np

from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.graph import Graph, Tensor

__all__ = ["combine"]


def combine(graph: Graph, operator: str) -> Tensor:
    """``Add`` or ``Mul`` of the input and a convolution of it, in either order, or of two convolutions."""
    first = convolve(graph, graph.input, FORMS[graph.between(0, 1)], same_shape=True)
    second = graph.input
    if graph.chance(0.3):
        second = convolve(graph, graph.input, FORMS[graph.between(0, 1)], same_shape=True)
    operands = [first, second] if graph.chance(0.5) else [second, first]
    real = (np.add if operator == "Add" else np.multiply)(operands[0].real, operands[1].real)
    result = graph.fit(real, first.dtype)
    form = ("quantized", "around")[graph.between(0, 1)]
    name = getattr(graph, form)(operator, operands, result)
    return graph.tensor(name, result, operator, "QDQ" if form == "around" else "QLinear")
