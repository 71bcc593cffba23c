"""BatchNormalization of feature maps as a convolution, which quantizer and device support."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from openmxu.segments.bodies import inputs_of

__all__ = ["replace_normalizations"]

_FEATURE_MAP_DIMENSIONS = (3, 4)
"""Batch, channels, and one or two more."""


def replace_normalizations(graph: onnx.GraphProto) -> None:
    """Write ``scale · (x - mean) / √(variance + ε) + bias`` as a depthwise convolution of one position.

    It has one weight for each channel, which becomes 127 or -127 with a separate scale: quantizing it loses nothing.
    Normalizations of the graph's inputs stay: they belong to the host, in float32.
    """
    constants = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    inputs = {item.name for item in graph.input}
    dimensions = {item.name: len(item.type.tensor_type.shape.dim) for item in graph.value_info}
    for node in graph.node:
        if node.op_type != "BatchNormalization" or node.input[0] in inputs:
            continue
        rank = dimensions.get(node.input[0])
        if rank in _FEATURE_MAP_DIMENSIONS and all(name in constants for name in node.input[1:]):
            _replace(graph, node, [constants[name] for name in node.input[1:]], rank)
    used = {name for node in graph.node for name in inputs_of(node)} | {item.name for item in graph.output}
    kept = [item for item in graph.initializer if item.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _replace(graph: onnx.GraphProto, node: onnx.NodeProto, parameters: list[NDArray[np.float32]], rank: int) -> None:
    scale, bias, mean, variance = (array.astype(np.float64) for array in parameters)
    epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-5)
    weights = scale / np.sqrt(variance + epsilon)
    channels = len(weights)
    source, target = node.input[0], node.output[0]
    names = [f"{target}_weights", f"{target}_bias"]
    for name, array in zip(names, (weights.reshape(channels, *[1] * (rank - 1)), bias - mean * weights), strict=True):
        graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    convolution = helper.make_node("Conv", [source, *names], [target], name=node.name, group=channels)
    node.CopyFrom(convolution)
