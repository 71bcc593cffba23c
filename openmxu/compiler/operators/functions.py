"""Values of real functions, for tables.

A table must hold what ONNX Runtime computes, whose float32 exponentials are its own approximations: where it is
installed, it is asked. Otherwise ONNX's reference evaluator answers; its results may differ in the last bit of a
float32, and so a table's entry by one where the function comes that close to the middle between two integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.operators.builder import Builder, node_name
from openmxu.compiler.operators.values import Constant, RealConstant, Value
from openmxu.segments.graph_runner import GraphError, GraphRunner, make_graph_model

if TYPE_CHECKING:
    import onnx

__all__ = ["Quantization", "evaluate_function", "tabulated"]


@dataclass(frozen=True)
class Quantization:
    """What bytes mean: (byte - zero point) · scale."""

    scale: np.float32
    zero_point: int
    dtype: str


def evaluate_function(
    nodes: Sequence[onnx.NodeProto], values: NDArray[np.float32], builder: Builder
) -> NDArray[np.float32]:
    """What ``nodes`` make of a vector; inputs that are neither constants nor made by other nodes are that vector.

    Raises
    ------
    ModelError
        The nodes cannot be computed.
    """
    from onnx import TensorProto, helper, numpy_helper

    inputs, constants = _names(nodes, builder)
    model = make_graph_model(
        nodes,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [values.size]) for name in inputs],
        [nodes[-1].output[0]],
        [numpy_helper.from_array(_number(builder.values[name]), name) for name in constants],
        builder.opset,
    )
    result = _computed(model, dict.fromkeys(inputs, values), nodes[-1])
    return np.broadcast_to(np.asarray(result, np.float32).reshape(-1), values.shape)


def tabulated(
    nodes: Sequence[onnx.NodeProto],
    source: Quantization,
    target: Quantization,
    builder: Builder,
) -> NDArray[np.integer]:
    """The table of ``nodes`` between DequantizeLinear and QuantizeLinear: an entry for each byte, as unsigned.

    All of it is one graph, so that ONNX Runtime replaces it by one of its integer operators where it does that in the
    model: their arithmetic is not that of float32.

    Raises
    ------
    ModelError
        The nodes cannot be computed.
    """
    from onnx import helper, numpy_helper

    inputs, constants = _names(nodes, builder)
    graph: list[onnx.NodeProto] = []
    arrays: list[onnx.TensorProto] = []

    def converted(operator: str, name: str, result: str, quantization: Quantization) -> None:
        scale, zero_point = f"{result} scale", f"{result} zero point"
        arrays.append(numpy_helper.from_array(np.asarray(quantization.scale, np.float32), scale))
        arrays.append(numpy_helper.from_array(np.asarray(quantization.zero_point, quantization.dtype), zero_point))
        graph.append(helper.make_node(operator, [name, scale, zero_point], [result]))

    for name in inputs:
        converted("DequantizeLinear", "bytes", name, source)
    for name in constants:
        value = builder.values[name]
        if isinstance(value, RealConstant) and value.integers.dtype in (np.int8, np.uint8):
            arrays.append(numpy_helper.from_array(value.integers.reshape(()), f"{name} integers"))
            converted("DequantizeLinear", f"{name} integers", name, _of_constant(value))
        else:
            arrays.append(numpy_helper.from_array(_number(value), name))
    graph += nodes
    converted("QuantizeLinear", nodes[-1].output[0], "table", target)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(source.dtype))
    port = helper.make_tensor_value_info("bytes", kind, [256])
    model = make_graph_model(graph, [port], ["table"], arrays, builder.opset)
    values = np.arange(256, dtype=np.uint8).view(source.dtype)
    result = _computed(model, {"bytes": values}, nodes[-1])
    return np.broadcast_to(result.reshape(-1), values.shape)


def _of_constant(value: RealConstant) -> Quantization:
    scale, zero_point = np.float32(value.scale.reshape(())), int(value.zero_point.reshape(()))
    return Quantization(scale, zero_point, value.integers.dtype.name)


def _names(nodes: Sequence[onnx.NodeProto], builder: Builder) -> tuple[list[str], list[str]]:
    """The names of what nodes take from elsewhere: the argument, and constants."""
    made = {name for node in nodes for name in node.output}
    used = {name for node in nodes for name in node.input if name} - made
    constants = {name for name in used if isinstance(builder.values.get(name), (Constant, RealConstant))}
    return sorted(used - constants), sorted(constants)


def _number(value: Value) -> NDArray[Any]:
    """A constant of one value, without dimensions, of which it may have more than a vector."""
    if isinstance(value, RealConstant):
        steps = np.float32(int(value.integers.reshape(())) - int(value.zero_point.reshape(())))
        return np.asarray(steps * np.float32(value.scale.reshape(())), np.float32)
    assert isinstance(value, Constant), "other values are arguments"
    return value.array.reshape(())


def _computed(model: onnx.ModelProto, inputs: Mapping[str, NDArray[Any]], last: onnx.NodeProto) -> NDArray[Any]:
    try:
        # Optimized, because that is how ONNX Runtime computes the model from which the nodes are.
        (result,) = GraphRunner(model.SerializeToString(), optimize=True).run(inputs)
    except GraphError as error:
        raise ModelError(f"node {node_name(last)!r} ({last.op_type}) cannot be computed: {error}") from None
    return result
