"""ONNX graphs to networks: loads a model, checks it, and walks over its nodes."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from openmxu.compiler.builder import Builder, node_name
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.network import Network
from openmxu.compiler.operators import OPERATORS, visit
from openmxu.compiler.values import Constant, FloatInput, Integers, Real, RealConstant, RealSums, Sums
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
        The model is valid, but more than a chain of quantized dense layers.
    OSError
        The file cannot be read.
    """
    proto = _load(model)
    graph = proto.graph
    _check_operators(graph)
    _check_model(proto)
    return _Walk(graph, _opset(proto)).network()


def _load(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    if isinstance(model, onnx.ModelProto):
        return model
    name = "the model" if isinstance(model, bytes) else os.fspath(model)
    try:
        # Whatever the file is called: onnx would read other formats by the ending of the name.
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(name, format="protobuf")
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"{name} is no ONNX model, or truncated: {_first_line(error)}") from None
    if not proto.HasField("graph"):
        raise ModelError(f"{name} is no ONNX model, or truncated: it holds no graph")
    return proto


def _check_operators(graph: onnx.GraphProto) -> None:
    """Find unknown operators before ONNX's checker does, which would not say what is supported."""
    for node in graph.node:
        known = node.domain in ("", "ai.onnx") and node.op_type in OPERATORS
        if not known:
            operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            raise UnsupportedOperatorError(
                node_name(node), operator, f"the operator is not supported; supported: {', '.join(sorted(OPERATORS))}"
            )


def _check_model(proto: onnx.ModelProto) -> None:
    import onnx

    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"the model is not valid ONNX: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


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
                raise ModelError(f"the constant {item.name!r} cannot be read: {_first_line(error)}") from None
        inputs = [item for item in graph.input if item.name not in constants]
        if len(inputs) != 1 or len(graph.output) != 1:
            raise ModelError(f"the model must have one input and one output, not {len(inputs)} and {len(graph.output)}")
        self._name = inputs[0].name
        self._batch, shape = _input_shape(inputs[0])
        self._dtype = _input_dtype(inputs[0])
        first = FloatInput(shape) if self._dtype == "float32" else Integers(shape, self._dtype)
        self._first = first
        self._builder = Builder({**constants, self._name: first}, opset, self._batch)

    def network(self) -> Network:
        builder = self._builder
        for node in self._graph.node:
            for name in node.input:
                if name and name not in builder.values:
                    raise ModelError(f"node {node_name(node)!r} ({node.op_type}) uses {name!r} before it is made")
                self._check_chain(node, name)
            visit(builder, node)
        name = self._graph.output[0].name
        if name not in builder.values:
            raise ModelError(f"no node makes the output {name!r}")
        output = self._output(name)
        if not builder.layers:
            raise ModelError("the model has no dense layer")
        return Network(self._input(), output, tuple(builder.layers), self._batch)

    def _check_chain(self, node: onnx.NodeProto, name: str) -> None:
        value = self._builder.values.get(name)
        if self._uses[name] > 1 and value is not None and not isinstance(value, (Constant, RealConstant)):
            raise UnsupportedOperatorError(
                node_name(node),
                node.op_type,
                f"its input {name!r} is used {self._uses[name]} times; supported: chains of layers without branches",
            )

    def _input(self) -> HostTensor:
        builder = self._builder
        quantization = builder.input_quantization
        stored, scale, zero_point = (self._dtype, None, 0) if quantization is None else quantization
        return HostTensor(
            self._name, self._dtype, self._first.shape, builder.layers[0].inputs, stored, scale, zero_point
        )

    def _output(self, name: str) -> HostTensor:
        builder = self._builder
        value = builder.values[name]
        match value:
            case Integers():
                dtype, stored, scale, zero_point = value.dtype, value.dtype, None, 0
            case Real() if not np.isfinite([value.low, value.high]).any():
                dtype, stored = "float32", value.integers.dtype
                scale, zero_point = (float(value.scale),), value.zero_point
            case Sums(scale=None):
                builder.close_sums(value)
                dtype, stored, scale, zero_point = "int32", "int32", None, 0
            case Sums() if not np.isfinite([value.low, value.high]).any():
                builder.close_sums(value)
                scale = tuple(float(item) for item in value.scale.reshape(-1))
                dtype, stored, zero_point = "float32", "int32", 0
            case RealSums():
                builder.close_sums(value.sums)
                scale = tuple(float(item) for item in value.scale.reshape(-1))
                dtype, stored, zero_point = "float32", "int32", 0
            case _:
                raise UnsupportedOperatorError(
                    name, "output", "a limited float32 output needs QuantizeLinear before it"
                )
        if not builder.layers:
            raise ModelError("the model has no dense layer")
        return HostTensor(name, dtype, value.shape, builder.layers[-1].outputs, stored, scale, zero_point)


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
