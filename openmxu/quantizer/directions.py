"""Bidirectional recurrent nodes as two nodes, one for each direction, since the device has cells of one direction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from openmxu.compiler.recurrent.support import GATES, attributes_of

__all__ = ["split_directions"]

_PER_DIRECTION = (1, 2, 3, 5, 6, 7)
"""Inputs whose first dimension, or second one of states with layout 1, counts directions."""
_STATES = (5, 6)
_ACTIVATIONS = {"LSTM": 3, "GRU": 2}
_DIRECTIONS = ("forward", "reverse")


def split_directions(graph: onnx.GraphProto) -> None:
    """Split every bidirectional LSTM and GRU whose weights are constants."""
    constants = {item.name for item in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        is_bidirectional = node.op_type in GATES and attributes_of(node).get("direction") == b"bidirectional"
        if is_bidirectional and constants.issuperset(name for name in node.input[1:4] if name):
            nodes += _split(graph, node)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _split(graph: onnx.GraphProto, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A node for each direction, with what divides its inputs and joins its outputs."""
    attributes = attributes_of(node)
    layout = attributes.get("layout", 0)
    constants = {item.name: item for item in graph.initializer}
    inputs = [list(node.input), list(node.input)]
    prefix = node.name or node.output[0] or node.output[1]
    divided: set[str] = set()
    for index in _PER_DIRECTION:
        if index >= len(node.input) or not node.input[index]:
            continue
        name = node.input[index]
        axis = 1 if layout and index in _STATES else 0
        parts = [f"{prefix} {name} {direction}" for direction in _DIRECTIONS]
        if name in divided:
            pass  # an LSTM may begin with the same tensor twice
        elif name in constants:
            halves = np.split(numpy_helper.to_array(constants[name]), 2, axis)
            graph.initializer.extend(
                numpy_helper.from_array(np.ascontiguousarray(half), part)
                for half, part in zip(halves, parts, strict=True)
            )
        else:
            sizes = f"{prefix} {name} sizes"
            graph.initializer.append(numpy_helper.from_array(np.array([1, 1]), sizes))
            yield helper.make_node("Split", [name, sizes], parts, name=f"{prefix} {name} split", axis=axis)
        divided.add(name)
        for own, part in zip(inputs, parts, strict=True):
            own[index] = part
    for number, direction in enumerate(_DIRECTIONS):
        outputs = [f"{name} {direction}" if name else "" for name in node.output]
        given = _of_direction(node.op_type, attributes, number) | {"direction": direction}
        yield helper.make_node(node.op_type, inputs[number], outputs, name=f"{prefix} {direction}", **given)
    for index, name in enumerate(node.output):
        if name:
            axis = (2 if layout else 1) if index == 0 else layout
            parts = [f"{name} {direction}" for direction in _DIRECTIONS]
            yield helper.make_node("Concat", parts, [name], name=f"{name} directions", axis=axis)


def _of_direction(operator: str, attributes: dict[str, Any], number: int) -> dict[str, Any]:
    """The attributes of one direction; lists of activations hold those of both, one after the other."""
    own = dict(attributes)
    for name in ("activations", "activation_alpha", "activation_beta"):
        values = own.get(name)
        if isinstance(values, list) and len(values) == 2 * _ACTIVATIONS[operator]:
            half = len(values) // 2
            own[name] = values[number * half : (number + 1) * half]
    return own
