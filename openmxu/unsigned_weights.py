"""Models whose weights ONNX Runtime multiplies exactly, where it would saturate sums of unsigned by signed bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["with_unsigned_weights"]

_PRODUCTS = {
    **dict.fromkeys(("QLinearMatMul", "QLinearConv", "QGemm"), (0, 2, 3, 5)),
    **dict.fromkeys(("MatMulInteger", "ConvInteger"), (0, 2, 1, 3)),
}
"""Operators with two operands, and which inputs are the first operand and its zero point, and those of the second."""

_LAYERS = ("Conv", "Gemm", "MatMul")
"""Operators of real numbers that ONNX Runtime turns into those above."""


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with 128 added to signed weights of unsigned inputs, and to their zero points.

    Bodies of control flow are left as they are.
    """
    inferred = onnx.shape_inference.infer_shapes(model)
    graph = inferred.graph
    rewriter = _Rewriter(graph)
    for node in list(graph.node):
        if node.op_type in _PRODUCTS:
            rewriter.product(node)
        elif node.op_type == "DequantizeLinear":
            rewriter.dequantize(node)
    # ONNX Runtime warns of constants that nothing uses.
    used = {*_read(graph), *(output.name for output in graph.output)}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    # Those of the weights are not what they were.
    del graph.value_info[:]
    return inferred


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that nodes read, of a graph and of those inside."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _read(inner)


class _Rewriter:
    """Changes nodes of a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._constants |= {
            node.output[0]: numpy_helper.to_array(node.attribute[0].t)
            for node in graph.node
            if node.op_type == "Constant" and node.attribute[0].name == "value"
        }
        # Types of operators that onnx does not know are those of their users' zero points.
        values = (*graph.input, *graph.value_info)
        self._signed = {name for name, array in self._constants.items() if array.dtype == np.int8}
        self._signed |= {value.name for value in values if value.type.tensor_type.elem_type == TensorProto.INT8}
        inputs = {value.name for value in graph.input}
        inputs |= {node.output[0] for node in graph.node if node.op_type == "QuantizeLinear"}
        self._has_signed_inputs = bool(self._signed & (inputs - self._constants.keys()))
        # The real numbers that come from signed bytes, and by the second operand of a layer its first one.
        self._real = {
            node.output[0]
            for node in graph.node
            if node.op_type == "DequantizeLinear" and self._signed.intersection((node.input[0], *node.input[2:3]))
        }
        self._inputs = {node.input[1]: node.input[0] for node in graph.node if node.op_type in _LAYERS}
        self._names: dict[str, str] = {}

    def dequantize(self, node: onnx.NodeProto) -> None:
        """Of a DequantizeLinear of signed weights, which may be computed from constants."""
        name, scale, zero = [*node.input, ""][:3]
        source = self._inputs.get(node.output[0])
        if source in self._real if source else self._has_signed_inputs:
            return
        if self._signed.intersection((name, zero)) and (not zero or zero in self._constants):
            shape = self._constants[scale].shape if scale in self._constants else ()
            _replace(node, [self._moved(node, name), scale, self._zero(zero, shape)])

    def product(self, node: onnx.NodeProto) -> None:
        """Of a product of unsigned by signed bytes."""
        left, left_zero, right, right_zero = _PRODUCTS[node.op_type]
        inputs = [*node.input, *[""] * (right_zero + 1 - len(node.input))]
        is_fixed = not inputs[right_zero] or inputs[right_zero] in self._constants
        is_signed = [
            bool(self._signed.intersection((inputs[place], inputs[zero])))
            for place, zero in ((left, left_zero), (right, right_zero))
        ]
        if is_fixed and is_signed == [False, True]:
            inputs[right] = self._moved(node, inputs[right])
            inputs[right_zero] = self._zero(inputs[right_zero], ())
            _replace(node, inputs)

    def _zero(self, name: str, shape: tuple[int, ...]) -> str:
        """The name of a zero point, 128 larger; that without a name is 0."""
        return self._constant(name or f"zero.{shape}", self._constants[name] if name else np.zeros(shape, np.int8))

    def _constant(self, name: str, values: NDArray[np.generic]) -> str:
        """The name of a constant of these values, 128 larger."""
        if name not in self._names:
            self._names[name] = f"{name}.unsigned"
            unsigned = (values.astype(np.int16) + 128).astype(np.uint8)
            self._graph.initializer.append(numpy_helper.from_array(unsigned, self._names[name]))
        return self._names[name]

    def _moved(self, node: onnx.NodeProto, name: str) -> str:
        """The name of a tensor, 128 larger, which ``node`` will read."""
        if name in self._constants:
            return self._constant(name, self._constants[name])
        wide, number, sums, unsigned = (
            f"{name}.{node.output[0]}.{step}" for step in ("wide", "128", "sums", "unsigned")
        )
        self._graph.initializer.append(numpy_helper.from_array(np.array(128, np.int32), number))
        place = next(index for index, other in enumerate(self._graph.node) if other.output == node.output)
        steps = (
            helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
            helper.make_node("Add", [wide, number], [sums]),
            helper.make_node("Cast", [sums], [unsigned], to=TensorProto.UINT8),
        )
        for step in reversed(steps):
            self._graph.node.insert(place, step)
        return unsigned


def _replace(node: onnx.NodeProto, inputs: Sequence[str]) -> None:
    """Give a node other inputs."""
    del node.input[:]
    node.input.extend(inputs)
