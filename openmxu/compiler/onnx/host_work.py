"""How much a part of a model would be for the array."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

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
    """Multiplications of all convolutions, matrix products and recurrent cells among some nodes."""
    return sum(_multiply_adds(node, shapes) for node in nodes)


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
