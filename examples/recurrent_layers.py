"""LSTM and GRU layers of PyTorch as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["cell_constants", "make_model", "read_weights", "with_steps"]

_OPSET, _IR_VERSION = 17, 8

_ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""For each gate of ONNX its place in PyTorch: i, o, f, c of i, f, g, o; z, r, h of r, z, n."""


def read_weights(archive: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.float32]]:
    """The float32 weights of a file: float16, or whole numbers times one called like them with ``_scale``."""
    weights = {}
    for name in archive:
        array = archive[name]
        if name.endswith("_scale"):
            continue
        scale = archive[f"{name}_scale"] if f"{name}_scale" in archive else np.float32(1)
        weights[name] = array.astype(np.float32) * np.float32(scale)
    return weights


def cell_constants(
    weights: Mapping[str, NDArray[np.float32]], kind: str, layer: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """W, R and B of ONNX for layer number ``layer`` of PyTorch's ``lstm`` or ``gru``."""

    def ordered(name: str) -> NDArray[np.float32]:
        gates = np.split(weights[f"{kind}.{name}_l{layer}"], len(_ORDERS[kind]))
        return np.concatenate([gates[index] for index in _ORDERS[kind]])

    biases = np.concatenate([ordered("bias_ih"), ordered("bias_hh")])
    return tuple(array[np.newaxis] for array in (ordered("weight_ih"), ordered("weight_hh"), biases))


def make_model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: Mapping[str, NDArray[np.generic]],
) -> onnx.ModelProto:
    """A checked model."""
    initializers = [numpy_helper.from_array(array, key) for key, array in constants.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    imports = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, producer_name="openmxu", opset_imports=imports, ir_version=_IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


def with_steps(model: onnx.ModelProto, name: str, steps: int) -> onnx.ModelProto:
    """A copy of a model whose input ``name``, (batch, steps, …), has another number of steps."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    given = next(item for item in copy.graph.input if item.name == name)
    given.type.tensor_type.shape.dim[1].dim_value = steps
    return copy
