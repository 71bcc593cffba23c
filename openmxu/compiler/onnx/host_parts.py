"""What of a model the host computes: its first and its last part, as far as the device cannot.

The device is asked first. A node that it refuses goes to the host: together with everything that it depends on, to the
first part, or with everything that depends on it, to the last part. Neither may take work from the array: a node
between quantized layers that the device cannot do is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.ir.network import Network, evaluate
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.walk import Refusal, Walk
from openmxu.compiler.operators.builder import node_name
from openmxu.compiler.operators.table import operator_name
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.graph_runner import GraphError, GraphRunner, make_graph_model
from openmxu.segments.host_segment import HostSegment

if TYPE_CHECKING:
    import onnx

__all__ = ["Model", "divide"]

_OPEN_BATCHES = (2, 3)
"""Batches with which a stage is tried out where the model leaves the batch open."""
_DOMAINS = ("", "ai.onnx", "com.microsoft")


@dataclass(frozen=True)
class Model:
    """A model divided between host and device: fields as those of :class:`openmxu.program.Program`."""

    network: Network
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    before: HostSegment | None
    after: HostSegment | None

    def evaluate(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The outputs by name for the inputs by name, each as the graph sees it; the reference without a device.

        States that stay on the device are 0.
        """
        values = {spec.name: np.moveaxis(inputs[spec.name], spec.batch_axis, 0) for spec in self.inputs}
        if self.before is not None:
            values |= self.before.run(values)
        ports = self.network.inputs
        results = evaluate(
            self.network, {port.host.name: port.host.to_integers(values[port.host.name]) for port in ports}
        )
        for port in self.network.outputs:
            integers = results[port.host.name] if isinstance(results, dict) else results
            values[port.host.name] = port.host.from_integers(integers)
        if self.after is not None:
            values |= self.after.run(values)
        return {spec.name: np.moveaxis(values[spec.name], 0, spec.batch_axis) for spec in self.outputs}


def divide(graph: onnx.GraphProto, opset: int) -> Model:
    """Translate a graph, as much of it as possible for the device.

    Raises
    ------
    ModelError, UnsupportedOperatorError
    """
    view = GraphView.of(graph, opset)
    _check_quantized(view)
    given = {spec.name: spec for spec in view.inputs}
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    before = None
    reasons: dict[int, UnsupportedOperatorError] = {}
    while True:
        wanted = [name for name in _wanted(view, last) if name not in given]
        try:
            network = Walk(view, first | last, tuple(given.values()), wanted).network()
        except Refusal as refusal:
            moved = _movable(view, refusal, reasons)
            reasons[refusal.index] = refusal.error
            if moved.is_first:
                first |= moved.nodes
                before = _stage(view, first, given, refusal.error)
                given |= {spec.name: spec for spec in before.outputs}
            else:
                last |= moved.nodes
        else:
            break
    reason = next(iter(reasons.values()), None)
    if not network.operations:
        raise reason or ModelError("nothing in the model is an operation of the device")
    there = given | {port.host.name: port.host.spec for port in network.outputs}
    after = None
    if last:
        after = _stage(view, last, there, reason)
        there |= {spec.name: spec for spec in after.outputs}
    model = Model(network, view.inputs, tuple(there[item.name] for item in graph.output), before, after)
    _check_inputs(model)
    return model


def _check_quantized(view: GraphView) -> None:
    """Tell models without fixed scales apart from those with a layer too few that is quantized."""
    for node in view.graph.node:
        if node.op_type.startswith("DynamicQuantize"):
            reason = (
                "it chooses scales while the model runs; openmxu quantize makes a model with fixed scales of the float "
                "model that was quantized dynamically"
            )
            raise UnsupportedOperatorError(node_name(node), operator_name(node), reason)
    operators = {node.op_type for node in view.graph.node}
    is_quantized = any(name.startswith(("QLinear", "Quantize", "Dequantize")) for name in operators)
    if not is_quantized and all(spec.dtype not in ("int8", "uint8") for spec in view.inputs):
        node = view.graph.node[0]
        reason = "nothing in the model is quantized; openmxu quantize makes a quantized model of it"
        raise UnsupportedOperatorError(node_name(node), node.op_type, reason)


def _wanted(view: GraphView, last: Collection[int]) -> list[str]:
    """The tensors that must be there when the last part begins, outputs included that others make."""
    made = {name for index in last for name in view.graph.node[index].output}
    outputs = [item.name for item in view.graph.output if item.name not in made]
    return list(dict.fromkeys([*outputs, *view.part(last)[1]]))


@dataclass(frozen=True)
class _Moved:
    """Nodes that go to the host, to its first or its last part."""

    nodes: frozenset[int]
    is_first: bool


def _movable(view: GraphView, refusal: Refusal, reasons: Mapping[int, UnsupportedOperatorError]) -> _Moved:
    """The nodes that go to the host with one that the device refuses; ``reasons`` are those of nodes that went before.

    Raises
    ------
    UnsupportedOperatorError
        Between quantized layers nothing goes to the host.
    """
    before, behind = view.ancestors(refusal.index), view.descendants(refusal.index)
    can_be_first = not any(map(view.is_array_work, before))
    if refusal.is_first and can_be_first:
        return _Moved(before, is_first=True)
    if not any(map(view.is_array_work, behind)):
        return _Moved(behind, is_first=False)
    if can_be_first:
        return _Moved(before, is_first=True)
    error = refusal.error
    earlier = [reason for index, reason in reasons.items() if index in before]
    if earlier:
        text = f"{error.reason}; the host computes what comes before it, because of {earlier[0]}"
        error = UnsupportedOperatorError(error.node, error.operator, text)
    raise error


def _stage(
    view: GraphView, moved: Collection[int], there: Mapping[str, ArraySpec], reason: UnsupportedOperatorError
) -> HostSegment:
    """A stage of some nodes, tried out.

    Raises
    ------
    UnsupportedOperatorError
        The host cannot do it either, or the batch does not stay in front.
    """
    from onnx import helper, numpy_helper

    numbers, needed, constants = view.part(moved)
    nodes = [view.graph.node[number] for number in numbers]
    for node in nodes:
        if node.domain not in _DOMAINS or any(item.HasField("g") or item.graphs for item in node.attribute):
            raise reason
    inputs = [there[name] for name in needed]
    for spec in inputs:
        if spec.batch_axis:
            text = f"the batch must be the first dimension of {spec.name!r} for the host, not number {spec.batch_axis}"
            raise UnsupportedOperatorError(reason.node, reason.operator, text)
    outputs = view.leaving(moved)
    model = make_graph_model(
        nodes,
        [
            helper.make_tensor_value_info(
                spec.name,
                helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype)),
                [view.batch or "batch", *spec.shape],
            )
            for spec in inputs
        ],
        outputs,
        [numpy_helper.from_array(view.constants[name].array, name) for name in constants],
        view.opset,
    ).SerializeToString()
    return HostSegment(model, tuple(inputs), _try_out(view, model, inputs, outputs, reason), view.batch)


def _try_out(
    view: GraphView, model: bytes, inputs: Sequence[ArraySpec], outputs: Sequence[str], reason: UnsupportedOperatorError
) -> tuple[ArraySpec, ...]:
    """Types and shapes of a stage's outputs, found by computing it."""
    made: list[tuple[ArraySpec, ...]] = []
    for batch in (view.batch,) if view.batch else _OPEN_BATCHES:
        values = {spec.name: np.zeros((batch, *spec.shape), spec.dtype) for spec in inputs}
        try:
            arrays = GraphRunner(model).run(values)
        except GraphError as error:
            text = f"{reason.reason}; the host cannot compute it either: {error}"
            raise UnsupportedOperatorError(reason.node, reason.operator, text) from None
        for name, array in zip(outputs, arrays, strict=True):
            if array.shape[:1] != (batch,):
                node = view.graph.node[view.makers[name]]
                text = f"the batch must stay the first dimension of what host and device exchange, not {array.shape}"
                raise UnsupportedOperatorError(node_name(node), node.op_type, text)
        pairs = zip(outputs, arrays, strict=True)
        made.append(tuple(ArraySpec(name, array.dtype.name, array.shape[1:]) for name, array in pairs))
    if made[0] != made[-1]:
        raise UnsupportedOperatorError(reason.node, reason.operator, "shapes behind it depend on the batch")
    return made[0]


def _check_inputs(model: Model) -> None:
    """Every input must be used by somebody."""
    used = {port.host.name for port in model.network.inputs}
    for stage in (model.before, model.after):
        used.update(spec.name for spec in (stage.inputs if stage else ()))
    for spec in model.inputs:
        if spec.name not in used:
            raise ModelError(f"nothing uses the input {spec.name!r}")
