"""ONNX graphs to networks: loads a model, checks it, and walks over its nodes."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from openmxu.compiler.builder import Builder, Input, node_name
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.model_file import check_model, first_line, load_model
from openmxu.compiler.network import Network, Port
from openmxu.compiler.operators import OPERATORS, operator_name, visit
from openmxu.compiler.values import Constant, FloatInput, Integers, Real, RealSums, Sums, Value
from openmxu.host_tensor import HostTensor

if TYPE_CHECKING:
    import onnx

__all__ = ["import_model"]


def import_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Network:
    """The network of an ONNX model.

    Parameters
    ----------
    model
        Path of a file, the file's bytes, or the model itself.

    Raises
    ------
    ModelError
        The model is damaged or invalid.
    UnsupportedOperatorError
        The model is valid, but an operator in it is not supported.
    OSError
        The file cannot be read.
    """
    proto = load_model(model)
    graph = proto.graph
    _check_operators(graph)
    check_model(proto)
    return _Walk(graph, _opset(proto)).network()


def _check_operators(graph: onnx.GraphProto) -> None:
    """Find unknown operators before ONNX's checker does, which would not say what is supported."""
    for node in graph.node:
        operator = operator_name(node)
        if operator not in OPERATORS:
            raise UnsupportedOperatorError(
                node_name(node), operator, f"the operator is not supported; supported: {', '.join(sorted(OPERATORS))}"
            )


def _opset(proto: onnx.ModelProto) -> int:
    return max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)


class _Walk:
    """Visits the nodes of one graph in order and keeps what every tensor is."""

    def __init__(self, graph: onnx.GraphProto, opset: int) -> None:
        from onnx import numpy_helper

        self._graph = graph
        self._uses = Counter(name for node in graph.node for name in node.input)
        self._uses.update(output.name for output in graph.output)
        constants = {}
        for item in graph.initializer:
            try:
                constants[item.name] = Constant(numpy_helper.to_array(item))
            except KeyError:
                raise ModelError(f"the constant {item.name!r} is of the unknown type {item.data_type}") from None
            except (ValueError, TypeError) as error:
                raise ModelError(f"the constant {item.name!r} cannot be read: {first_line(error)}") from None
        inputs = [item for item in graph.input if item.name not in constants]
        if not inputs or not graph.output:
            raise ModelError(f"the model must have inputs and outputs, not {len(inputs)} and {len(graph.output)}")
        shapes = [_input_shape(item) for item in inputs]
        batches = {batch for batch, _ in shapes}
        if len(batches) != 1:
            raise ModelError("all inputs must have the same batch")
        self._names = [item.name for item in inputs]
        self._builder = Builder(dict(constants), opset, batches.pop())
        for item, (_, shape) in zip(inputs, shapes, strict=True):
            self._builder.values[item.name] = self._input(item.name, _input_dtype(item), shape)

    def network(self) -> Network:
        builder = self._builder
        for node in self._graph.node:
            for name in node.input:
                if name and name not in builder.values:
                    raise ModelError(f"node {node_name(node)!r} ({node.op_type}) uses {name!r} before it is made")
                self._check_uses(node, name)
            visit(builder, node)
        outputs = tuple(self._output(item.name) for item in self._graph.output)
        self._check_inputs()
        return Network(
            inputs=builder.input_ports(),
            outputs=outputs,
            tensors=builder.tensors,
            operations=tuple(builder.operations),
            constants=builder.constants,
            batch=builder.batch,
        )

    def _check_inputs(self) -> None:
        """Every input must reach an operation; only then it has a place."""
        builder = self._builder
        used = {source for operation in builder.operations for source in operation.sources}
        names = {builder.inputs[tensor].name for tensor in used & builder.inputs.keys()}
        unused = [name for name in self._names if name not in names]
        if unused:
            raise ModelError(f"no supported operation uses the input {unused[0]!r}")

    def _check_uses(self, node: onnx.NodeProto, name: str) -> None:
        value = self._builder.values.get(name)
        if self._uses[name] > 1 and isinstance(value, (Sums, RealSums)):
            raise UnsupportedOperatorError(
                node_name(node),
                node.op_type,
                f"its input {name!r} is used {self._uses[name]} times; supported between quantized tensors only",
            )

    def _input(self, name: str, dtype: str, shape: tuple[int, ...]) -> Value:
        if dtype == "float32":
            return FloatInput(name, shape, shape)
        self._builder.inputs[name] = Input(name, dtype, shape, dtype)
        return Integers(name, shape, dtype)

    def _output(self, name: str) -> Port:
        builder = self._builder
        value = builder.values.get(name)
        scale, zero_point = None, 0
        match value:
            case None:
                raise ModelError(f"no node makes the output {name!r}")
            case Integers():
                tensor, dtype, stored = value.tensor, value.dtype, value.dtype
            case Real(nodes=()):
                tensor, dtype, stored = value.integers.tensor, "float32", value.integers.dtype
                scale, zero_point = (float(value.scale),), value.zero_point
            case Sums(scales=()):
                builder.close_sums(value, name)
                tensor, dtype, stored = name, "int32", "int32"
            case Sums() | RealSums():
                sums = value.sums if isinstance(value, RealSums) else value
                if sums.is_limited or not sums.is_from_array:
                    raise UnsupportedOperatorError(name, "output", "this float32 output needs QuantizeLinear before it")
                builder.close_sums(sums, name)
                factors = value.scale if isinstance(value, RealSums) else value.scales[0]
                tensor, dtype, stored = name, "float32", "int32"
                scale = tuple(float(item) for item in factors.reshape(-1))
            case _:
                raise UnsupportedOperatorError(name, "output", "this float32 output needs QuantizeLinear before it")
        if tensor in builder.inputs:
            raise ModelError(f"nothing computes the output {name!r}: it is an input")
        columns, channels_first = builder.tensors[tensor].channels, builder.channels_first[tensor]
        host = HostTensor(name, dtype, value.shape, columns, stored, scale, zero_point, channels_first=channels_first)
        return Port(host, tensor)


def _input_shape(item: onnx.ValueInfoProto) -> tuple[int | None, tuple[int, ...]]:
    """Fixed batch, if any, and the shape of one batch element."""
    dims = item.type.tensor_type.shape.dim
    if len(dims) < 2:
        raise ModelError(f"input {item.name!r} must have a batch dimension and at least one more, not {len(dims)}")
    shape = tuple(dim.dim_value for dim in dims[1:])
    if any(length < 1 for length in shape):
        raise ModelError(f"input {item.name!r} must have fixed dimensions after the batch")
    return dims[0].dim_value if dims[0].dim_value > 0 else None, shape


def _input_dtype(item: onnx.ValueInfoProto) -> str:
    import onnx

    kinds = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8"}
    kind = item.type.tensor_type.elem_type
    if kind not in kinds:
        name = onnx.TensorProto.DataType.Name(kind).lower()
        raise ModelError(f"input {item.name!r} must be float32, uint8 or int8, not {name}")
    return kinds[kind]
