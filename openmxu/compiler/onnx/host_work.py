"""How much a part of a model would be for the array."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from openmxu.segments.bodies import bodies_of

if TYPE_CHECKING:
    import onnx

__all__ = ["multiply_adds", "shapes_needed"]

_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "FusedConv": 1, "QLinearConv": 3}
"""Operators, each with the number of the input that holds the weights."""
_PRODUCTS = ("FusedGemm", "FusedMatMul", "Gemm", "MatMul", "MatMulInteger", "QGemm", "QLinearMatMul")
"""Operators whose first input holds rows."""
_CELLS = ("GRU", "LSTM", "RNN")


def shapes_needed(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    """Names of the tensors whose shapes :func:`multiply_adds` needs."""
    names = []
    for node in nodes:
        match node.op_type:
            case kind if kind in _CONVOLUTIONS:
                names += [node.input[_CONVOLUTIONS[kind]], node.output[0]]
            case kind if kind in _PRODUCTS:
                names += [node.input[0], node.output[0]]
            case "ConvTranspose":
                names += node.input[:2]
            case kind if kind in _CELLS:
                names += node.input[:3]
    return list(dict.fromkeys(names))


def multiply_adds(nodes: Iterable[onnx.NodeProto], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Multiplications of all convolutions, matrix products and recurrent cells among some nodes.

    In bodies of If, Loop and Scan each weight counts once: how many rows it multiplies there, and how often a body is
    computed, is known when it runs.
    """
    total = 0
    for node in nodes:
        total += _multiply_adds(node, shapes)
        total += sum(_weights(body, shapes) for body in bodies_of(node))
    return total


def _weights(body: onnx.GraphProto, outside: Mapping[str, tuple[int, ...]]) -> int:
    """The weights of a body, those that it is given included where their shapes are declared."""
    shapes = dict(outside)
    for item in (*body.input, *body.value_info):
        shapes[item.name] = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
    shapes |= {item.name: tuple(item.dims) for item in body.initializer}
    count = 0
    for node in body.node:
        count += sum(math.prod(shapes.get(name, (0,))) for name in _weight_inputs(node))
        count += sum(_weights(inner, shapes) for inner in bodies_of(node))
    return count


def _weight_inputs(node: onnx.NodeProto) -> Sequence[str]:
    match node.op_type:
        case kind if kind in _CONVOLUTIONS:
            return node.input[_CONVOLUTIONS[kind] :][:1]
        case "QGemm" | "QLinearMatMul":
            return node.input[3:4]
        case kind if kind in _PRODUCTS or kind == "ConvTranspose":
            return node.input[1:2]
        case kind if kind in _CELLS:
            return node.input[1:3]
    return ()


def _multiply_adds(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    match node.op_type:
        case kind if kind in _CONVOLUTIONS:
            weights = shapes[node.input[_CONVOLUTIONS[kind]]]
            return math.prod(shapes[node.output[0]]) * math.prod(weights[1:])
        case kind if kind in _PRODUCTS:
            rows = shapes[node.input[0]]
            is_transposed = any(item.name == "transA" and item.i for item in node.attribute)
            return math.prod(shapes[node.output[0]]) * rows[0 if is_transposed else -1]
        case "ConvTranspose":
            return math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])
        case kind if kind in _CELLS:
            sequence, *weights = (shapes[name] for name in node.input[:3])
            return math.prod(sequence[:2]) * sum(map(math.prod, weights))
    return 0
