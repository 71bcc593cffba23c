"""The walk over a graph's nodes, which makes a network of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from openmxu.arch.errors import OpenmxuError
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.ir.network import Network, Port
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.builder import Builder, Input, node_name
from openmxu.compiler.operators.lanes import settled
from openmxu.compiler.operators.sequences import arranged, plain, unarranged
from openmxu.compiler.operators.table import visit
from openmxu.compiler.operators.values import (
    Arranged,
    FloatInput,
    HostArray,
    Integers,
    Moved,
    Real,
    RealSums,
    Refused,
    Sums,
    Value,
    WideReal,
)
from openmxu.compiler.recurrent.unused import without_unused
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.bodies import inputs_of
from openmxu.segments.host_tensor import HostTensor

if TYPE_CHECKING:
    import onnx

__all__ = ["DEVICE_TYPES", "Refusal", "Walk"]

DEVICE_TYPES = ("float32", "int8", "uint8", "int16")
"""Of arrays that the device is given."""


class Refusal(OpenmxuError):
    """The device cannot compute node number ``index``; ``error`` says why.

    ``is_consequence`` tells that it could, if only something on the device worked on the result.
    """

    def __init__(self, index: int, error: UnsupportedOperatorError, is_consequence: bool = False) -> None:
        super().__init__(str(error))
        self.index = index
        self.error = error
        self.is_consequence = is_consequence


class Walk:
    """Visits those nodes of a graph in order that the device is to compute, and keeps what every tensor is.

    Parameters
    ----------
    nodes
        Numbers of the nodes.
    given
        What is there before the device begins.
    wanted
        Names of the tensors that the device has to leave.
    passed_on
        Those that the device works on later.
    batch
        The batch of what is given; ``None`` where it is open.
    """

    def __init__(
        self,
        view: GraphView,
        nodes: Collection[int],
        given: Sequence[ArraySpec],
        wanted: Sequence[str],
        passed_on: Collection[str],
        batch: int | None,
    ) -> None:
        self._view = view
        self._nodes = view.part(nodes)[0]
        self._wanted = wanted
        self._passed_on = passed_on
        self._uses = Counter(name for index in self._nodes for name in inputs_of(view.graph.node[index]))
        self._uses.update(wanted)
        self._builder = Builder(dict(view.constants), view.opset, batch)
        for spec in given:
            self._builder.values[spec.name] = self._given(spec)
            self._builder.batch_axes[spec.name] = spec.batch_axis

    def network(self) -> Network:
        """The network of all nodes visited.

        Raises
        ------
        Refusal
            A node has no place in it.
        ModelError
            The model has no meaning.
        """
        builder = self._builder
        for index in self._nodes:
            self._visit(index, self._view.graph.node[index])
        outputs = tuple(self._output(name) for name in self._wanted)
        return without_unused(
            Network(
                inputs=builder.input_ports(),
                outputs=outputs,
                tensors=builder.tensors,
                operations=tuple(builder.operations),
                constants=builder.constants,
                batch=builder.batch,
            )
        )

    def _visit(self, index: int, node: onnx.NodeProto) -> None:
        values = self._builder.values
        try:
            for name in node.input:
                if name and name not in values:
                    raise ModelError(f"node {node_name(node)!r} ({node.op_type}) uses {name!r} before it is made")
                self._check_use(node, name)
            visit(self._builder, node)
        except UnsupportedOperatorError as error:
            if index not in self._view.constant_nodes:
                raise Refusal(index, error) from None
            # The host may still be the only one that uses it.
            values.update({name: Refused(error) for name in node.output})

    def _check_use(self, node: onnx.NodeProto, name: str) -> None:
        value = self._builder.values.get(name)
        if isinstance(value, Refused):
            raise value.error
        if self._uses[name] > 1 and isinstance(value, (Sums, RealSums)):
            raise UnsupportedOperatorError(
                node_name(node),
                node.op_type,
                f"its input {name!r} is used {self._uses[name]} times; supported between quantized tensors only",
            )

    def _given(self, spec: ArraySpec) -> Value:
        if spec.is_whole or not spec.shape or spec.dtype not in DEVICE_TYPES:
            return HostArray(spec)
        order = list(range(1, len(spec.shape) + 1))
        order.insert(spec.batch_axis, 0)
        if spec.dtype == "float32":
            return arranged(FloatInput(spec.name, spec.shape, spec.shape), tuple(order))
        self._builder.inputs[spec.name] = Input(spec.name, spec.dtype, spec.shape, spec.dtype)
        return arranged(Integers(spec.name, spec.shape, spec.dtype), tuple(order))

    def _output(self, name: str) -> Port:
        builder = self._builder
        value, order = self._in_place(name), (0,)
        if isinstance(value, Arranged):
            value, order = unarranged(value)
        scale, zero_point = None, 0
        match value:
            case Integers():
                tensor, dtype, stored = value.tensor, value.dtype, value.dtype
            case WideReal() | Real(nodes=(), precise=(_, _)):
                tensor, factor = value.precise if isinstance(value, Real) else (value.tensor, value.scale)
                dtype, stored, scale = "float32", "int16", (float(factor),)
            case Real(nodes=()):
                tensor, dtype, stored = value.integers.tensor, "float32", value.integers.dtype
                scale, zero_point = (float(value.scale),), value.zero_point
            case Sums(scales=()):
                builder.close_sums(value, name)
                tensor, dtype, stored = name, "int32", "int32"
            case Sums() | RealSums():
                sums = value.sums if isinstance(value, RealSums) else value
                if sums.is_limited or not sums.is_from_array or sums.is_rounded:
                    raise self._refused_output(name)
                builder.close_sums(sums, name)
                factors = value.scale if isinstance(value, RealSums) else value.scales[0]
                tensor, dtype, stored = name, "float32", "int32"
                scale = tuple(float(item) for item in factors.reshape(-1))
            case _:
                raise self._refused_output(name)
        if tensor in builder.inputs:
            raise self._refused_output(name)
        columns, channels_first = builder.tensors[tensor].channels, builder.channels_first[tensor]
        host = HostTensor(
            name,
            dtype,
            value.shape,
            columns,
            stored,
            scale,
            zero_point,
            channels_first=channels_first,
            batch_axis=order.index(0),
        )
        return Port(host, tensor)

    def _in_place(self, name: str) -> Value:
        """A value that is wanted. The host moves elements, unless the device works on them as well."""
        value = self._builder.values[name]
        if not isinstance(value, Moved) or (name not in self._passed_on and self._uses[name] == 1):
            return value
        node = self._view.graph.node[self._view.makers[name]]
        return settled(Visit(self._builder, node, node_name(node), {}, []), value)

    def _refused_output(self, name: str) -> Refusal:
        index = self._view.makers[name]
        node = self._view.graph.node[index]
        value = plain(self._builder.values[name])
        is_input = isinstance(value, Integers) and value.tensor in self._builder.inputs
        reason = f"nothing on the device computes its result {name!r}"
        if not is_input:
            reason = f"its result {name!r} needs QuantizeLinear behind it to leave the device"
        return Refusal(index, UnsupportedOperatorError(node_name(node), node.op_type, reason), is_consequence=True)
