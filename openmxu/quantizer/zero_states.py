"""Initial states of recurrent cells that are zeros, left out: ONNX takes zeros where there is none.

Exporters compute them from the shape of the input. Quantized like other tensors, they would be taken for states that
somebody gives.
"""

from __future__ import annotations

import math

import onnx
from onnx import helper, numpy_helper

from openmxu.compiler.recurrent.support import GATES

__all__ = ["drop_zero_states"]

_STATES = (5, 6)

_COPIES = frozenset({"Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"})
"""Operators whose outputs hold elements of the first input only."""

_MOST_ELEMENTS = 1 << 16
"""Of constants that are looked at."""


def drop_zero_states(graph: onnx.GraphProto) -> None:
    """Leave out every initial state of an LSTM or a GRU that is zeros, whatever the batch is."""
    zeros = {item.name for item in graph.initializer if _is_zeros(item)}
    for node in graph.node:
        if _makes_zeros(node, zeros):
            zeros.update(node.output)
        if node.op_type in GATES:
            for index in _STATES:
                if index < len(node.input) and node.input[index] in zeros:
                    node.input[index] = ""


def _makes_zeros(node: onnx.NodeProto, zeros: set[str]) -> bool:
    match node.op_type:
        case "Constant" | "ConstantOfShape":
            values = [helper.get_attribute_value(item) for item in node.attribute if item.name == "value"]
            return all(map(_is_zeros, values)) if values else node.op_type == "ConstantOfShape"
        case "Concat":
            return zeros.issuperset(node.input)
        case operator:
            return operator in _COPIES and node.input[0] in zeros


def _is_zeros(tensor: onnx.TensorProto) -> bool:
    is_small_float = tensor.data_type == onnx.TensorProto.FLOAT and math.prod(tensor.dims) <= _MOST_ELEMENTS
    return is_small_float and not tensor.external_data and not numpy_helper.to_array(tensor).any()
