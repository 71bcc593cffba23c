"""Parts of a model as graphs for the host, tried out when the model is compiled."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.host_work import multiply_adds, shapes_needed
from openmxu.compiler.operators.builder import node_name
from openmxu.segments.array_spec import WHOLE, ArraySpec
from openmxu.segments.graph_runner import DOMAINS, GraphError, GraphRunner, make_graph_model
from openmxu.segments.host_segment import HostSegment

if TYPE_CHECKING:
    import onnx

__all__ = ["NoBatchError", "host_segment"]

_OPEN_BATCHES = (2, 3)
"""Batches with which a part is tried out where the model leaves the batch open."""
_MOST_ELEMENTS = 1 << 30
"""Of an array that a part is tried out with."""


class NoBatchError(Exception):
    """``name``, which the host makes, has no dimension for the batch."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.shape = shape


def host_segment(
    view: GraphView,
    nodes: Collection[int],
    wanted: Sequence[str],
    there: Mapping[str, ArraySpec],
    reason: UnsupportedOperatorError,
) -> HostSegment:
    """Some nodes as a segment.

    Parameters
    ----------
    wanted
        Names of its outputs.
    there
        What it can have as inputs.
    reason
        Why the device does not compute the nodes.

    Raises
    ------
    UnsupportedOperatorError
        The host cannot do it either.
    NoBatchError
        An output has no dimension for the batch.
    """
    numbers, needed, constants = view.part(nodes)
    for node in (view.graph.node[number] for number in numbers):
        if node.domain not in DOMAINS or any(item.HasField("g") or item.graphs for item in node.attribute):
            raise reason
        if node.op_type == "QLinearConcat" and not all(node.input):
            # ONNX's checker does not know the operator, and ONNX Runtime crashes.
            raise ModelError(f"node {node_name(node)!r} (QLinearConcat): an input is missing")
    inputs = [there[name] for name in needed]
    work = [view.graph.node[number] for number in numbers]
    model = _model(view, work, inputs, wanted, constants)
    extra = [name for name in shapes_needed(work) if name not in wanted and name not in needed]
    observed = _model(view, work, inputs, [*wanted, *(name for name in extra if name not in constants)], constants)
    outputs, count = _try_out(view, observed, inputs, wanted, constants, reason)
    return HostSegment(model.SerializeToString(), tuple(inputs), outputs, view.batch, count)


def _model(
    view: GraphView,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[ArraySpec],
    outputs: Sequence[str],
    constants: Sequence[str],
) -> onnx.ModelProto:
    from onnx import helper, numpy_helper

    ports = []
    for spec in inputs:
        shape: list[int | str] = [*spec.shape]
        if not spec.is_whole:
            shape.insert(spec.batch_axis, view.batch or "batch")
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
        ports.append(helper.make_tensor_value_info(spec.name, kind, shape))
    tensors = [numpy_helper.from_array(view.constants[name].array, name) for name in constants]
    return make_graph_model(nodes, ports, outputs, tensors, view.opset)


def _try_out(
    view: GraphView,
    model: onnx.ModelProto,
    inputs: Sequence[ArraySpec],
    wanted: Sequence[str],
    constants: Sequence[str],
    reason: UnsupportedOperatorError,
) -> tuple[tuple[ArraySpec, ...], int]:
    """The outputs, and the multiplications for one batch element, found by computing the model."""
    batches = (view.batch,) if view.batch else _OPEN_BATCHES
    if view.is_whole:
        batches = (1,)
    runner, names = None, [item.name for item in model.graph.output]
    shapes: list[dict[str, tuple[int, ...]]] = []
    arrays: Mapping[str, NDArray[Any]] = {}
    for batch in batches:
        sizes = {spec.name: math.prod(spec.full_shape(batch)) for spec in inputs}
        largest = max(sizes, key=sizes.__getitem__)
        if sizes[largest] > _MOST_ELEMENTS:
            text = f"{reason.reason}; the host cannot compute it either: {largest!r} has {sizes[largest]:,} elements"
            raise UnsupportedOperatorError(reason.node, reason.operator, text)
        values = {spec.name: np.zeros(spec.full_shape(batch), spec.dtype) for spec in inputs}
        try:
            runner = runner or GraphRunner(model.SerializeToString(), optimize=True)
            arrays = dict(zip(names, runner.run(values), strict=True))
        except GraphError as error:
            text = f"{reason.reason}; the host cannot compute it either: {error}"
            raise UnsupportedOperatorError(reason.node, reason.operator, text) from None
        shapes.append({name: array.shape for name, array in arrays.items()})
    outputs = []
    for name in wanted:
        axis = WHOLE if view.is_whole else _batch_axis([made[name] for made in shapes], batches)
        if axis is None:
            raise NoBatchError(name, shapes[-1][name])
        shape = list(shapes[-1][name])
        if axis != WHOLE:
            del shape[axis]
        if 0 in shape:
            text = f"{reason.reason}; the host computes it, but {name!r} is empty"
            raise UnsupportedOperatorError(reason.node, reason.operator, text)
        outputs.append(ArraySpec(name, arrays[name].dtype.name, tuple(shape), axis))
    known = shapes[-1] | {spec.name: spec.full_shape(batches[-1]) for spec in inputs}
    known |= {name: view.constants[name].array.shape for name in constants}
    return tuple(outputs), multiply_adds(model.graph.node, known) // batches[-1]


def _batch_axis(shapes: Sequence[tuple[int, ...]], batches: Sequence[int]) -> int | None:
    """The dimension that is the batch; where several may be, the first one."""
    if len({len(shape) for shape in shapes}) != 1:
        return None
    columns = list(zip(*shapes, strict=True))
    if any(len(set(column)) > 1 and column != tuple(batches) for column in columns):
        return None
    axes = [axis for axis, column in enumerate(columns) if column == tuple(batches)]
    return axes[0] if axes else None
