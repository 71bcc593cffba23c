"""An ONNX graph seen as a whole: who makes what, who depends on whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from openmxu.compiler.errors import ModelError
from openmxu.compiler.operators.sequences import batch_axes
from openmxu.compiler.operators.values import Constant
from openmxu.segments.array_spec import WHOLE, ArraySpec
from openmxu.segments.bodies import inputs_of

if TYPE_CHECKING:
    import onnx

__all__ = ["GraphView"]

_ARRAY_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul"})
_INTEGER_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QGemm", "QuantizeLinear"})
_REAL_ARRAY_OPERATORS = frozenset({"Conv", "ConvTranspose", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})


@dataclass(frozen=True)
class GraphView:
    """A graph and what is known of it before anything is translated.

    Attributes
    ----------
    inputs
        What the caller gives; the constants left out.
    batch
        The inputs' fixed batch, or ``None``.
    is_whole
        The arrays have no batch: all shapes are fixed, and inputs may have different first dimensions, or none.
    constants
        The initializers.
    makers
        The number of the node that makes a tensor, by the tensor's name.
    constant_nodes
        Numbers of nodes that depend on no input.
    working_nodes
        Numbers of the other nodes that an output depends on, in order.
    """

    graph: onnx.GraphProto
    opset: int
    inputs: tuple[ArraySpec, ...]
    batch: int | None
    constants: Mapping[str, Constant]
    is_whole: bool = False
    makers: Mapping[str, int] = field(init=False)
    constant_nodes: frozenset[int] = field(init=False)
    working_nodes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        makers = {name: index for index, node in enumerate(self.graph.node) for name in node.output if name}
        object.__setattr__(self, "makers", makers)
        varying = {spec.name for spec in self.inputs}
        constant = set()
        for index, node in enumerate(self.graph.node):
            if varying.isdisjoint(inputs_of(node)):
                constant.add(index)
            else:
                varying.update(node.output)
        object.__setattr__(self, "constant_nodes", frozenset(constant))
        wanted, working = {item.name for item in self.graph.output}, []
        for index in reversed(range(len(self.graph.node))):
            node = self.graph.node[index]
            if index not in constant and not wanted.isdisjoint(set(node.output) - {""}):
                working.append(index)
                wanted.update(inputs_of(node))
        object.__setattr__(self, "working_nodes", tuple(reversed(working)))

    @classmethod
    def whole(cls, graph: onnx.GraphProto, opset: int) -> GraphView:
        """The view of a graph with fixed shapes only, whose arrays have no batch.

        Raises
        ------
        ModelError
            As those of :meth:`of`.
        """
        constants = _constants(graph)
        ports = _ports(graph, constants)
        inputs = []
        for item in ports:
            shape = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
            if any(length < 1 for length in shape):
                raise ModelError(f"input {item.name!r} must have fixed dimensions")
            inputs.append(ArraySpec(item.name, _input_dtype(item), shape, WHOLE))
        return cls(graph, opset, tuple(inputs), None, constants, is_whole=True)._checked()

    @classmethod
    def of(cls, graph: onnx.GraphProto, opset: int) -> GraphView:
        """The view of a graph that ONNX's checker accepts.

        Raises
        ------
        ModelError
            Inputs have no fixed shapes, or a constant cannot be read.
        """
        constants = _constants(graph)
        ports = _ports(graph, constants)
        axes = batch_axes(graph.node)
        shapes = [_input_shape(item, axes.get(item.name, 0)) for item in ports]
        batches = {batch for batch, _ in shapes}
        if len(batches) != 1:
            raise ModelError("all inputs must have the same batch")
        inputs = (
            ArraySpec(item.name, _input_dtype(item), shape, axes.get(item.name, 0))
            for item, (_, shape) in zip(ports, shapes, strict=True)
        )
        return cls(graph, opset, tuple(inputs), batches.pop(), constants)._checked()

    def _checked(self) -> GraphView:
        """The view itself, if its outputs are computed from its inputs."""
        for item in self.graph.output:
            if item.name in (spec.name for spec in self.inputs):
                raise ModelError(f"nothing computes the output {item.name!r}: it is an input")
            if item.name in self.constants or self.makers.get(item.name) in self.constant_nodes:
                raise ModelError(f"the output {item.name!r} does not depend on any input")
            if item.name not in self.makers:
                raise ModelError(f"no node makes the output {item.name!r}")
        return self

    def is_array_work(self, index: int) -> bool:
        """Whether a node multiplies by quantized weights, or quantized tensors by each other: the device's work."""
        node = self.graph.node[index]
        if node.op_type in _REAL_ARRAY_OPERATORS:
            makers = [self.graph.node[self.makers[name]] for name in node.input if name in self.makers]
            return any(maker.op_type == "DequantizeLinear" for maker in makers)
        return node.op_type in _ARRAY_OPERATORS

    def converts(self, index: int, *operators: str) -> bool:
        """Whether a node is one of these operators, with everything but its first input constant."""
        node = self.graph.node[index]
        if node.op_type not in operators:
            return False
        return all(name in self.constants or self.makers.get(name) in self.constant_nodes for name in node.input[1:])

    def makes_integers(self, index: int) -> bool:
        """Whether a node's results are integers."""
        node = self.graph.node[index]
        return node.op_type in _INTEGER_OPERATORS or node.op_type.startswith("QLinear")

    def part(self, nodes: Collection[int]) -> tuple[list[int], list[str], list[str]]:
        """Some nodes as a graph of their own.

        Returns
        -------
        The numbers of its nodes, those included that only make constants for it; the names of the tensors that it needs
        from elsewhere, and of those initializers that it uses.
        """
        own, needed, constants = set(nodes), [], []
        waiting = deque(sorted(nodes))
        while waiting:
            for name in inputs_of(self.graph.node[waiting.popleft()]):
                maker = self.makers.get(name)
                if name in self.constants:
                    constants.append(name)
                elif maker in self.constant_nodes:
                    if maker not in own:
                        own.add(maker)
                        waiting.append(maker)
                elif name and maker not in own:
                    needed.append(name)
        return sorted(own), list(dict.fromkeys(needed)), list(dict.fromkeys(constants))


def _ports(graph: onnx.GraphProto, constants: Collection[str]) -> list[onnx.ValueInfoProto]:
    """The inputs that are no constants."""
    ports = [item for item in graph.input if item.name not in constants]
    if not ports or not graph.output:
        raise ModelError(f"the model must have inputs and outputs, not {len(ports)} and {len(graph.output)}")
    return ports


def _constants(graph: onnx.GraphProto) -> dict[str, Constant]:
    from onnx import numpy_helper

    constants = {}
    for item in graph.initializer:
        try:
            constants[item.name] = Constant(numpy_helper.to_array(item))
        except KeyError:
            raise ModelError(f"the constant {item.name!r} is of the unknown type {item.data_type}") from None
        except (ValueError, TypeError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(f"the constant {item.name!r} cannot be read: {reason}") from None
    return constants


def _input_shape(item: onnx.ValueInfoProto, axis: int) -> tuple[int | None, tuple[int, ...]]:
    """Fixed batch, if any, and the shape of one batch element; the batch is dimension ``axis``."""
    dims = list(item.type.tensor_type.shape.dim)
    if not dims:
        raise ModelError(f"input {item.name!r} is one number; scales, zero points and the like must be constants")
    if len(dims) <= axis:
        raise ModelError(f"input {item.name!r} must have a batch dimension")
    batch = dims.pop(axis)
    shape = tuple(dim.dim_value for dim in dims)
    for dim in dims:
        if dim.dim_value < 1:
            given = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
            remedy = f"{dim.dim_param}=N" if dim.dim_param else f"{item.name}={','.join(map(str, given))} without zeros"
            raise ModelError(
                f"input {item.name!r} must have fixed dimensions {'beside' if axis else 'after'} the batch, not "
                f"{dim.dim_param or dim.dim_value!r}; --shape {remedy} fixes it, in Python the argument shapes"
            )
    return batch.dim_value if batch.dim_value > 0 else None, shape


def _input_dtype(item: onnx.ValueInfoProto) -> str:
    import onnx
    from onnx import helper

    kind = item.type.tensor_type.elem_type
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    except KeyError:
        dtype = None
    if dtype is None or dtype.kind not in "biuf":
        known = onnx.TensorProto.DataType.values()
        name = onnx.TensorProto.DataType.Name(kind).lower() if kind in known else f"number {kind}"
        raise ModelError(f"input {item.name!r} must be of a type of numbers that numpy knows, not {name}")
    return dtype.name
