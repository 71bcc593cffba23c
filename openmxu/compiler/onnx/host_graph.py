"""Parts of a model as graphs for the host, tried out when the model is compiled."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.host_work import multiply_adds, shapes_needed
from openmxu.compiler.operators.builder import node_name
from openmxu.segments.array_spec import WHOLE, ArraySpec
from openmxu.segments.bodies import inputs_of, with_bodies
from openmxu.segments.graph_runner import DOMAINS, GraphError, GraphRunner, make_graph_model
from openmxu.segments.host_segment import HostSegment

if TYPE_CHECKING:
    import onnx

__all__ = ["HandOverError", "host_segment"]

_OPEN_BATCHES = (2, 3)
"""Batches with which a part is tried out where the model leaves the batch open."""
_BATCH = "batch"
"""Name of the open batch's dimension."""

_MOST_ELEMENTS = 1 << 27
"""Of an array that a part is tried out with."""


_MOST_SECONDS = 5.0
"""For a part that is tried out."""


class HandOverError(OpenmxuError):
    """The host makes tensor ``name`` of a shape that no other segment can take, ``why`` it cannot."""

    def __init__(self, name: str, why: str, lacks_batch: bool) -> None:
        super().__init__(name)
        self.name = name
        self.why = why
        self.lacks_batch = lacks_batch


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
    HandOverError
        An output has no dimension for the batch, or is empty.
    """
    numbers, needed, constants = view.part(nodes)
    work = [view.graph.node[number] for number in numbers]
    for node in (inner for outer in work for inner in with_bodies(outer)):
        if node.domain not in DOMAINS:
            raise reason
        if node.op_type == "QLinearConcat" and not all(node.input):
            # ONNX's checker does not know the operator, and ONNX Runtime crashes.
            raise ModelError(f"node {node_name(node)!r} (QLinearConcat): an input is missing")
    inputs = [there[name] for name in needed]
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
            shape.insert(spec.batch_axis, view.batch or _BATCH)
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
    inferred = _inferred(model)
    axes: dict[str, int] = {}
    for batch in batches:
        known = {spec.name: spec.full_shape(batch) for spec in inputs}
        _check_sizes(known | {name: _with_batch(shape, batch) for name, shape in inferred.items()}, reason)
        values = {spec.name: np.zeros(spec.full_shape(batch), spec.dtype) for spec in inputs}
        try:
            runner = runner or GraphRunner(model.SerializeToString(), optimize=True)
            arrays = dict(zip(names, runner.run(values, _MOST_SECONDS), strict=True))
        except GraphError as error:
            text = f"{reason.reason}; the host cannot compute it either: {error}"
            raise UnsupportedOperatorError(reason.node, reason.operator, text) from None
        shapes.append({name: array.shape for name, array in arrays.items()})
        if len(batches) > len(shapes) and all(
            inferred.get(name, ()).count(_BATCH) == 1 and _with_batch(inferred[name], batch) == shapes[0][name]
            for name in wanted
        ):
            axes = {name: inferred[name].index(_BATCH) for name in wanted}
            break  # as good as another batch
    outputs = []
    for name in wanted:
        axis: int | None = axes.get(name)
        if view.is_whole:
            axis = WHOLE
        elif len(shapes) == len(batches):
            axis = _batch_axis([made[name] for made in shapes], batches)
        if axis is None:
            raise HandOverError(name, f"no dimension of {shapes[-1][name]} is the batch", lacks_batch=True)
        shape = list(shapes[-1][name])
        if axis != WHOLE:
            del shape[axis]
        if 0 in shape and not _is_result(view, name):
            raise HandOverError(name, "it is empty where all inputs are 0", lacks_batch=False)
        outputs.append(ArraySpec(name, arrays[name].dtype.name, tuple(shape), axis))
    batch = batches[len(shapes) - 1]
    known = shapes[-1] | {spec.name: spec.full_shape(batch) for spec in inputs}
    known |= {name: view.constants[name].array.shape for name in constants}
    return tuple(outputs), multiply_adds(model.graph.node, known) // batch


def _is_result(view: GraphView, name: str) -> bool:
    """Whether a tensor is for the caller alone, who can have it empty: nothing may have been found in zeros."""
    is_output = any(item.name == name for item in view.graph.output)
    return view.is_whole and is_output and not any(name in inputs_of(node) for node in view.graph.node)


def _check_sizes(shapes: Mapping[str, tuple[int, ...]], reason: UnsupportedOperatorError) -> None:
    for name, shape in shapes.items():
        if math.prod(shape) > _MOST_ELEMENTS:
            text = f"{reason.reason}; the host cannot compute it either: {name!r} has {math.prod(shape):,} elements"
            raise UnsupportedOperatorError(reason.node, reason.operator, text)


def _inferred(model: onnx.ModelProto) -> dict[str, tuple[int | str, ...]]:
    """Shapes that ONNX's shape inference finds, with :data:`_BATCH` for the open batch; only those without gaps."""
    from onnx import shape_inference

    try:
        graph = shape_inference.infer_shapes(model).graph
    except Exception:  # of many classes that have nothing in common
        return {}
    shapes = {}
    for item in (*graph.value_info, *graph.output):
        dims = item.type.tensor_type.shape.dim
        shape = tuple(dim.dim_param or dim.dim_value for dim in dims)
        if item.type.tensor_type.HasField("shape") and all(size == _BATCH or isinstance(size, int) for size in shape):
            shapes[item.name] = shape
    return shapes


def _with_batch(shape: Sequence[int | str], batch: int) -> tuple[int, ...]:
    return tuple(batch if isinstance(size, str) else size for size in shape)


def _batch_axis(shapes: Sequence[tuple[int, ...]], batches: Sequence[int]) -> int | None:
    """The dimension that is the batch; where several may be, the first one."""
    if len({len(shape) for shape in shapes}) != 1:
        return None
    columns = list(zip(*shapes, strict=True))
    if any(len(set(column)) > 1 and column != tuple(batches) for column in columns):
        return None
    axes = [axis for axis, column in enumerate(columns) if column == tuple(batches)]
    return axes[0] if axes else None
