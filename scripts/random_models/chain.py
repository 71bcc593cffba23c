"""Chains of several exact layers, as in networks."""

from __future__ import annotations

from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.dense import multiply_rows
from scripts.random_models.functions import FUNCTIONS, apply_function
from scripts.random_models.graph import Graph, Tensor
from scripts.random_models.pooling import max_pool

__all__ = ["chain"]


def chain(graph: Graph) -> Tensor:
    """A convolution and one to three more, functions or poolings; half of the chains end in a matrix product."""
    tensor = graph.input
    for layer in range(graph.between(2, 4)):
        # The compiler recognizes the channel dimension of a one-dimensional input by a convolution.
        choice = 0.0 if layer == 0 else graph.random.random()
        if choice < 0.4:
            limit = ("", "", "Relu", "Clip")[graph.between(0, 3)]
            form = "Conv" if limit else FORMS[graph.between(0, 1)]
            tensor = convolve(graph, tensor, form, limit)
        elif choice < 0.7:
            tensor = max_pool(graph, tensor)
        else:
            tensor = apply_function(graph, tensor, FUNCTIONS[graph.between(0, len(FUNCTIONS) - 1)])
    return multiply_rows(graph, graph.flat(tensor)) if graph.chance(0.5) else tensor
