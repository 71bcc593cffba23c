"""Networks of several layers: of every kind and with branches, or chains of exact ones."""

from __future__ import annotations

import zlib

import numpy as np

from scripts.random_models.affine import affine, normalize
from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.dense import multiply_rows
from scripts.random_models.elementwise import combined
from scripts.random_models.functions import FUNCTIONS, apply_function
from scripts.random_models.graph import Graph, Network, Tensor
from scripts.random_models.movement import MOVEMENTS, move
from scripts.random_models.pooling import average_pool, global_average_pool, global_max_pool, max_pool, reduce_mean
from scripts.random_models.shapes import LARGEST_TENSOR, random_shape

__all__ = ["chain", "random_network"]

_OLDEST = 18
"""The first opset in which all operators have the meaning that is used here."""
_IMAGE_LAYERS = (
    *("convolution", "convolution", "convolution", "maximum", "average", "function", "sum", "product", "movement"),
    *("affine", "rows"),
)
_ROW_LAYERS = ("rows", "rows", "function", "sum", "movement")
_SAFE = LARGEST_TENSOR * 2


def random_network(seed: int, number: int) -> Network:
    """Network ``number`` of those with ``seed``: four to nine layers; the same one every time."""
    random = np.random.default_rng((seed, zlib.crc32(b"network"), number))
    powers_of_two = bool(random.random() < 0.1)
    shape = random_shape(random, batch=3, smallest=200)
    graph = Graph(random, shape, ("uint8", "int8")[number % 2], number * 101 % 256, powers_of_two)
    graph.vary(_OLDEST)
    tensor = graph.input
    made = [tensor]
    for _ in range(graph.between(3, 7)):
        tensor = _layer(graph, tensor, made)
        if tensor.values.size > _SAFE:
            break
        made.append(tensor)
    ending = graph.random.random()
    if ending < 0.3 and len(tensor.shape) > 2:
        tensor = (global_average_pool, global_max_pool, reduce_mean)[int(ending * 10)](graph, tensor)
    if ending < 0.6:
        tensor = multiply_rows(graph, graph.flat(tensor))
    return graph.network(tensor)


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


def _layer(graph: Graph, source: Tensor, made: list[Tensor]) -> Tensor:
    """Add a layer after ``source``, the last one of the tensors ``made`` so far."""
    rank = len(source.shape)
    kinds = _IMAGE_LAYERS if rank in (3, 4) else _ROW_LAYERS
    match kinds[graph.between(0, len(kinds) - 1)]:
        case "convolution":
            limit = ("", "", "", "Relu", "Clip")[graph.between(0, 4)]
            return convolve(graph, source, "Conv" if limit else FORMS[graph.between(0, 1)], limit)
        case "maximum":
            return max_pool(graph, source)
        case "average":
            return average_pool(graph, source)
        case "function":
            return apply_function(graph, source, FUNCTIONS[graph.between(0, len(FUNCTIONS) - 1)])
        case "sum":
            return combined(graph, ("Add", "Sub")[graph.between(0, 1)], _pair(graph, source, made))
        case "product":
            return combined(graph, "Mul", _pair(graph, source, made))
        case "affine":
            return (affine, normalize)[graph.between(0, 1)](graph, source)
        case "rows" if rank > 1:
            return multiply_rows(graph, source)
    return move(graph, source, MOVEMENTS[graph.between(0, len(MOVEMENTS) - 1)])


def _pair(graph: Graph, source: Tensor, made: list[Tensor]) -> list[Tensor]:
    """A tensor and another one of its type and shape: an earlier one, a convolution of it, or a further input."""
    earlier = [item for item in made if (item.shape, item.dtype) == (source.shape, source.dtype)]
    others = [item for item in earlier if item.name != source.name]
    if others and graph.chance(0.7):
        return [source, others[graph.between(0, len(others) - 1)]]
    if len(source.shape) in (3, 4) and graph.chance(0.7):
        return [source, convolve(graph, source, FORMS[graph.between(0, 1)], same_shape=True)]
    return [source, graph.new_input(source.shape, source.dtype, graph.between(0, 255))]
