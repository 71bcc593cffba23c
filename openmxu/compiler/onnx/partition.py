"""Which nodes of a model the device computes, and which the host.

The device is asked first: a node goes to the host if the device refuses it, or if nobody on the device would work on
what it makes. So a graph is cut wherever that is needed, into as few segments as possible. A segment of the device that
multiplies nothing costs more to reach than it saves, and goes to the host as well.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from openmxu.compiler.errors import CapacityError, ModelError, UnsupportedOperatorError
from openmxu.compiler.ir.model import Model
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Combination, Pooling
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.host_graph import HandOverError, host_segment
from openmxu.compiler.onnx.host_sums import host_sums
from openmxu.compiler.onnx.levels import Part, cut
from openmxu.compiler.onnx.walk import DEVICE_TYPES, Refusal, Walk
from openmxu.compiler.operators.builder import node_name
from openmxu.compiler.operators.sequences import batch_axes
from openmxu.compiler.operators.table import operator_name
from openmxu.compiler.recurrent.support import GATES
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.bodies import inputs_of
from openmxu.segments.host_segment import HostSegment

__all__ = ["Partition"]

_NAMED = 5
"""Nodes that an error names."""


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


class Partition:
    """The division of a graph between device and host.

    Parameters
    ----------
    view
        The graph of a valid model.

    Attributes
    ----------
    loses_batch
        Some node is the host's because an array has no dimension for the batch.

    Raises
    ------
    UnsupportedOperatorError
        The graph is none that can be divided.
    """

    def __init__(self, view: GraphView) -> None:
        _check_quantized(view)
        self.loses_batch = False
        self._view = view
        self._done: dict[tuple[Part, tuple[ArraySpec, ...]], Network | HostSegment] = {}
        self._reasons: dict[int, UnsupportedOperatorError] = {}
        self._consequences: set[int] = set()
        self._too_large: list[CapacityError] = []

    def refuse(self, error: CapacityError) -> bool:
        """Leave a node to the host that the device has no room for; whether there is such a node."""
        nodes = self._view.graph.node
        refused = [index for index in self._view.working_nodes if node_name(nodes[index]) == error.node]
        new = [index for index in refused if index not in self._reasons]
        for index in new:
            text = str(error).removeprefix(f"node {error.node!r}: ")
            self._reasons[index] = UnsupportedOperatorError(node_name(nodes[index]), nodes[index].op_type, text)
        if new:
            self._too_large.append(error)
        return bool(new)

    def model(self, *, strict: bool = False) -> Model:
        """Translate the graph, as much of it as possible for the device.

        Parameters
        ----------
        strict
            The host may compute nothing.

        Raises
        ------
        ModelError, UnsupportedOperatorError, CapacityError
        """
        segments = self._segments(strict)
        causes = self._causes()
        if strict and causes:
            raise _summary(causes)
        if not any(isinstance(segment, Network) for segment in segments):
            nothing = ModelError("nothing in the model is an operation of the device")
            raise next(iter([*self._too_large, *causes, nothing]))
        view = self._view
        there = _there(view, segments)
        _check_types(view, there)
        model = Model(view.inputs, tuple(there[item.name] for item in view.graph.output), tuple(segments))
        _check_inputs(model)
        return model

    def _causes(self) -> list[UnsupportedOperatorError]:
        """The reasons without those that follow from others, unless there are only such."""
        causes = [error for index, error in self._reasons.items() if index not in self._consequences]
        return causes or list(self._reasons.values())

    def _segments(self, strict: bool) -> list[Network | HostSegment]:
        """The segments; every part is translated again until nothing is refused any more."""
        while True:
            parts = cut(self._view, self._reasons.keys())
            try:
                segments = self._translated(parts)
            except Refusal as refusal:
                index = self._to_leave(refusal)
                self._reasons[index] = refusal.error
                if refusal.is_consequence or index != refusal.index:
                    self._consequences.add(index)
                continue
            left = self._idle(parts) or ({} if strict else self._inexact(parts, segments))
            if not left:
                return segments
            self._reasons |= left
            self._consequences.update(left)

    def _to_leave(self, refusal: Refusal) -> int:
        """The node that goes to the host because of a refusal: it itself.

        Where arrays have no batch, a recurrent node is asked once more without the node that makes its input: the host
        hands over time and batch in the order in which a recurrent node wants them.
        """
        view, node = self._view, self._view.graph.node[refusal.index]
        maker = view.makers.get(node.input[0]) if node.op_type in GATES and view.is_whole else None
        while maker is not None and view.converts(maker, "DequantizeLinear", "QuantizeLinear"):
            maker = view.makers.get(view.graph.node[maker].input[0])
        if maker is None or maker in self._reasons or view.is_array_work(maker):
            return refusal.index
        return maker

    def _translated(self, parts: list[Part]) -> list[Network | HostSegment]:
        segments: list[Network | HostSegment] = []
        there = {spec.name: spec for spec in self._view.inputs}
        for part in parts:
            given = tuple(there[name] for name in part.needed)
            if (part, given) not in self._done:
                self._done[part, given] = self._segment(part, given, parts)
            segments.append(self._done[part, given])
            there |= _outputs(segments[-1])
        return segments

    def _segment(self, part: Part, given: tuple[ArraySpec, ...], parts: list[Part]) -> Network | HostSegment:
        nodes = {*part.nodes, *part.repeated}
        if part.is_device:
            seen, batch = self._batched(nodes, given)
            network = Walk(self._view, nodes, seen, part.wanted, part.passed_on, batch).network()
            if not network.operations:
                node = self._view.graph.node[part.nodes[0]]
                reason = UnsupportedOperatorError(node_name(node), node.op_type, "it is no work for the device")
                raise Refusal(part.nodes[0], reason, is_consequence=True)
            return dataclasses.replace(network, is_whole=self._view.is_whole)
        reason = self._cause(part)
        try:
            return host_segment(self._view, nodes, part.wanted, {spec.name: spec for spec in given}, reason)
        except HandOverError as error:
            raise self._cannot_take(error, parts, reason) from None

    def _batched(self, nodes: Collection[int], given: Sequence[ArraySpec]) -> tuple[list[ArraySpec], int | None]:
        """What a part of the device is given, and its batch.

        Of arrays without a batch, the first dimension is one to the device, or the second one in front of recurrent
        nodes; what does not have the batch of most elements remains without.
        """
        view = self._view
        if not view.is_whole:
            return list(given), view.batch
        axes = batch_axes([view.graph.node[index] for index in sorted(nodes)])
        places = [(spec, axes.get(spec.name, 0)) for spec in given]
        elements: Counter[int] = Counter()
        for spec, axis in places:
            if axis < len(spec.shape) - 1 and spec.dtype in DEVICE_TYPES:
                elements[spec.shape[axis]] += math.prod(spec.shape)
        if not elements:
            return list(given), None
        batch = elements.most_common(1)[0][0]
        seen = [
            spec.with_batch(axis) if axis < len(spec.shape) - 1 and spec.shape[axis] == batch else spec
            for spec, axis in places
        ]
        return seen, batch

    def _cause(self, part: Part) -> UnsupportedOperatorError:
        """Why a part is the host's."""
        refused = [index for index in part.nodes if index in self._reasons]
        causes = [index for index in refused if index not in self._consequences]
        return self._reasons[min(causes or refused)]

    def _cannot_take(self, error: HandOverError, parts: list[Part], cause: UnsupportedOperatorError) -> Exception:
        """What follows from a tensor of the host that no other segment can use."""
        view = self._view
        self.loses_batch |= error.lacks_batch
        text = f"{cause.reason}; the host computes it, but cannot hand over {error.name!r}: {error.why}"
        reason = UnsupportedOperatorError(cause.node, cause.operator, text)
        for part in parts:
            for index in part.nodes if part.is_device else ():
                if error.name in inputs_of(view.graph.node[index]):
                    return Refusal(index, reason)
        return reason

    def _idle(self, parts: list[Part]) -> dict[int, UnsupportedOperatorError]:
        """Nodes of device parts that multiply nothing, if there are others that do."""
        view = self._view
        on_device = [part for part in parts if part.is_device]
        working = [part for part in on_device if any(map(view.is_array_work, part.nodes))]
        idle: dict[int, UnsupportedOperatorError] = {}
        for part in on_device if working else ():
            if part not in working:
                for index in part.nodes:
                    node = view.graph.node[index]
                    text = "the device would multiply nothing between two segments of the host"
                    idle[index] = UnsupportedOperatorError(node_name(node), node.op_type, text)
        return idle

    def _inexact(self, parts: list[Part], segments: list[Network | HostSegment]) -> dict[int, UnsupportedOperatorError]:
        """Nodes that ONNX Runtime may round another way, where that is not what the device is there for."""
        return self._with_ties(parts, segments) or self._sums_of_the_host(segments)

    def _sums_of_the_host(self, segments: list[Network | HostSegment]) -> dict[int, UnsupportedOperatorError]:
        """Sums of tensors that only the host uses."""
        view = self._view
        names = {
            operation.name
            for segment in segments
            for operation in (segment.operations if isinstance(segment, Network) else ())
            if isinstance(operation, Combination) and not operation.multiplies
        }
        nodes = view.graph.node
        adds = [index for index in view.working_nodes if nodes[index].op_type == "Add"]
        sums = [index for index in adds if node_name(nodes[index]) in names]
        text = "only the host uses the sum, and it adds as ONNX Runtime does"
        return {
            index: UnsupportedOperatorError(node_name(nodes[index]), nodes[index].op_type, text)
            for index in host_sums(view, sums, self._reasons)
        }

    def _with_ties(
        self, parts: list[Part], segments: list[Network | HostSegment]
    ) -> dict[int, UnsupportedOperatorError]:
        """Averages that ONNX Runtime may round another way, if something else is left for the device."""
        view = self._view
        names = {
            operation.name
            for segment in segments
            for operation in (segment.operations if isinstance(segment, Network) else ())
            if isinstance(operation, Pooling) and operation.has_ties
        }
        if not any(view.is_array_work(index) for part in parts if part.is_device for index in part.nodes):
            return {}
        text = "some averages lie in the middle between two integers: ONNX Runtime's float32 sums round them either way"
        return {
            index: UnsupportedOperatorError(node_name(view.graph.node[index]), view.graph.node[index].op_type, text)
            for part in parts
            for index in (part.nodes if part.is_device else ())
            if node_name(view.graph.node[index]) in names
        }


def _outputs(segment: Network | HostSegment) -> Mapping[str, ArraySpec]:
    if isinstance(segment, HostSegment):
        return {spec.name: spec for spec in segment.outputs}
    specs = {port.host.name: port.host.spec for port in segment.outputs}
    if segment.is_whole:
        batch = segment.batch or 1
        specs = {name: spec.whole(batch) for name, spec in specs.items()}
    return specs


def _there(view: GraphView, segments: list[Network | HostSegment]) -> dict[str, ArraySpec]:
    there = {spec.name: spec for spec in view.inputs}
    for segment in segments:
        there |= _outputs(segment)
    return there


def _check_types(view: GraphView, there: Mapping[str, ArraySpec]) -> None:
    """Check that outputs have the types that the graph declares, if it does."""
    from onnx import helper

    for item in view.graph.output:
        kind, spec = item.type.tensor_type.elem_type, there[item.name]
        if kind and kind != helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype)):
            raise ModelError(f"the output {item.name!r} is {spec.dtype}, but the model declares another type")


def _summary(causes: list[UnsupportedOperatorError]) -> UnsupportedOperatorError:
    """The first reason, and the nodes that the others are about."""
    first = causes[0]
    _, *others = dict.fromkeys(f"{error.node!r} ({error.operator})" for error in causes)
    if not others:
        return first
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    text = f"{first.reason}; the device does not compute either: {', '.join(others[:_NAMED])}{more}"
    return UnsupportedOperatorError(first.node, first.operator, text)


def _check_inputs(model: Model) -> None:
    """Every input must be used by somebody."""
    used = {port.host.name for network in model.networks for port in network.inputs}
    used.update(spec.name for segment in model.host_segments for spec in segment.inputs)
    for spec in model.inputs:
        if spec.name not in used:
            raise ModelError(f"nothing uses the input {spec.name!r}")
