"""Arithmetic with shapes, which exporters leave in models with an open batch, resolved before anything is translated.

PyTorch's initial states of recurrent cells are zeros of a shape that the model computes from that of its input, and so
are the shapes of many a Reshape. A vector of dimensions is known here if each is a number or the open batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.onnx.model_file import opset_of
from openmxu.compiler.operators.shapes import fold
from openmxu.segments.bodies import inputs_of

if TYPE_CHECKING:
    import onnx

__all__ = ["resolve_shapes"]

_BATCH = "batch"
"""In place of the number that is only known when the model runs; also the name that an open batch gets."""

_RECURRENT = ("GRU", "LSTM", "RNN")
_STATES = (5, 6)
"""Inputs of recurrent operators that may be the same for all elements of the batch."""

_MOST_ELEMENTS = 1 << 16
"""Of constants that are looked at."""

_Dimension = int | str


@dataclass(frozen=True)
class _Dimensions:
    """A known vector of dimensions, or a single one where ``is_scalar``."""

    items: tuple[_Dimension, ...]
    is_scalar: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether none is the batch."""
        return _BATCH not in self.items

    def array(self, batch: int) -> NDArray[np.int64]:
        """The dimensions with a number in place of the batch."""
        values = np.array([batch if item == _BATCH else item for item in self.items], np.int64)
        return values.reshape(()) if self.is_scalar else values


def resolve_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without those nodes that only compute shapes from its inputs' shapes; itself where there are none.

    Parameters
    ----------
    model
        A valid model.
    """
    import onnx

    if all(node.op_type != "Shape" for node in model.graph.node):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Resolution(copy).resolve()
    return copy


class _Resolution:
    """One model on its way.

    Parameters
    ----------
    model
        Is changed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx import numpy_helper

        self._graph = model.graph
        self._shapes = _inferred(model)
        self._constants = {
            item.name: numpy_helper.to_array(item)
            for item in self._graph.initializer
            if not item.external_data and math.prod(item.dims) <= _MOST_ELEMENTS
        }
        self._known: dict[str, _Dimensions] = {}
        self._made: dict[str, NDArray[Any]] = {}
        self._folded: set[str] = set()
        self._opset = opset_of(model)

    def resolve(self) -> None:
        """Put constants where nodes use what is known, and remove the nodes that nobody needs then."""
        from onnx import numpy_helper

        for node in self._graph.node:
            self._visit(node)
        resolved: dict[str, NDArray[Any]] = {}
        wanted = {item.name for item in self._graph.output}
        kept = []
        for node in reversed(self._graph.node):
            is_shape = set(node.output) <= self._known.keys() | self._made.keys()
            if is_shape and wanted.isdisjoint(node.output):
                continue
            for index, name in enumerate(node.input):
                array = self._replacement(node, index, name)
                if array is not None:
                    node.input[index] = f"{node.output[0]} {name}"
                    resolved[node.input[index]] = array
            kept.append(node)
            wanted.update(inputs_of(node))
        del self._graph.node[:]
        self._graph.node.extend(reversed(kept))
        self._graph.initializer.extend(
            numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in resolved.items()
        )

    def _visit(self, node: onnx.NodeProto) -> None:
        """Remember what a node makes, if it is known."""
        from onnx import helper, numpy_helper

        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        match node.op_type:
            case "Constant" if "value" in attributes:
                self._constants[node.output[0]] = numpy_helper.to_array(attributes["value"])
            case "Shape" if node.input[0] in self._shapes:
                shape = self._shapes[node.input[0]]
                self._known[node.output[0]] = _Dimensions(shape[attributes.get("start", 0) : attributes.get("end")])
            case "ConstantOfShape":
                value = attributes.get("value")
                self._fill(node, 0, np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value))
            case "Expand":
                self._fill(node, 1, self._constants.get(node.input[0]))
            case _ if not self._known.keys().isdisjoint(node.input):
                if not self._fold(node) and node.op_type in _STEPS:
                    self._step(node, attributes)
            case _ if not self._folded.isdisjoint(node.input):
                self._fold(node)

    def _step(self, node: onnx.NodeProto, attributes: Mapping[str, Any]) -> None:
        """What an operator makes of dimensions of which some are the batch."""
        inputs = [self._dimensions(name) for name in node.input if name]
        given = [item for item in inputs if item is not None]
        found = _STEPS[node.op_type](given, attributes) if len(given) == len(inputs) else None
        if found is not None:
            self._known[node.output[0]] = found

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Compute a node whose inputs are all numbers; whether it was possible."""
        arrays = [self._array(name) for name in node.input if name]
        given = [array for array in arrays if array is not None]
        if len(given) != len(arrays) or node.domain not in ("", "ai.onnx"):
            return False
        try:
            results = fold(node, node.name, self._opset, given)
        except ModelError:  # whoever needs the result says what is wrong with it
            return False
        for name, array in zip([item for item in node.output if item], results, strict=True):
            if array.size > _MOST_ELEMENTS:
                return False
            if array.ndim <= 1 and array.dtype == np.int64:
                self._known[name] = _Dimensions(tuple(array.reshape(-1).tolist()), array.ndim == 0)
            else:
                self._made[name] = array
            self._folded.add(name)
        return True

    def _array(self, name: str) -> NDArray[Any] | None:
        """A tensor that is known whatever the batch is."""
        if name in self._known:
            return self._known[name].array(1) if self._known[name].is_fixed else None
        return self._made[name] if name in self._folded else self._constants.get(name)

    def _fill(self, node: onnx.NodeProto, index: int, value: NDArray[Any] | None) -> None:
        """An array of a shape that is known; of one batch element where the batch is open."""
        shape = self._known.get(node.input[index])
        if shape is not None and shape.is_fixed and self._fold(node):
            return
        if shape is not None and value is not None:
            whole = np.broadcast_shapes(value.shape, tuple(shape.array(1)))
            self._made[node.output[0]] = np.broadcast_to(value, whole)

    def _dimensions(self, name: str) -> _Dimensions | None:
        """A tensor as dimensions, ``None`` where they are not known."""
        if name in self._known:
            return self._known[name]
        array = self._constants.get(name)
        if array is None or array.ndim > 1 or array.dtype.kind not in "iu":
            return None
        return _Dimensions(tuple(array.reshape(-1).tolist()), array.ndim == 0)

    def _replacement(self, node: onnx.NodeProto, index: int, name: str) -> NDArray[Any] | None:
        """The constant that takes the place of an input."""
        if name in self._made:
            is_state = node.op_type in _RECURRENT and index in _STATES
            return self._made[name] if is_state or self._is_fixed(name) else None
        known = self._known.get(name)
        if known is None:
            return None
        if known.is_fixed:
            return known.array(1)
        # Reshape knows two ways to keep a dimension that is not written down.
        if node.op_type == "Reshape" and index == 1 and known.items.count(_BATCH) == 1:
            if -1 not in known.items:
                return known.array(-1)
            place = known.items.index(_BATCH)
            shape = self._shapes.get(node.input[0], ())
            if shape[place : place + 1] != (_BATCH,):
                return None
            for attribute in [item for item in node.attribute if item.name == "allowzero"]:
                node.attribute.remove(attribute)
            return known.array(0)
        return None

    def _is_fixed(self, name: str) -> bool:
        """Whether an array that was made has no batch in its shape."""
        return name in self._folded or self._shapes.get(name) == self._made[name].shape


def _inferred(model: onnx.ModelProto) -> dict[str, tuple[_Dimension, ...]]:
    """The shapes of all tensors whose dimensions are numbers or the open batch."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    given = {item.name for item in copy.graph.initializer}
    names = {_BATCH}
    for item in copy.graph.input:
        open_dimensions = [dim for dim in item.type.tensor_type.shape.dim if dim.dim_value <= 0]
        if item.name not in given and len(open_dimensions) == 1:
            names.add(open_dimensions[0].dim_param)
            open_dimensions[0].dim_param = _BATCH
    try:
        graph = onnx.shape_inference.infer_shapes(copy, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, ValueError):  # of a model of 2 GB and more, for example
        return {}
    shapes = {}
    for item in (*graph.value_info, *graph.input, *graph.output):
        dims = item.type.tensor_type.shape.dim
        if item.type.tensor_type.HasField("shape") and all(
            dim.dim_value > 0 or dim.dim_param in names - {""} for dim in dims
        ):
            shapes[item.name] = tuple(dim.dim_value if dim.dim_value > 0 else _BATCH for dim in dims)
    return shapes


def _gathered(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    source, index = inputs
    places = index.items
    if attributes.get("axis", 0) or source.is_scalar or not all(_is_within(place, source) for place in places):
        return None
    return _Dimensions(tuple(source.items[place] for place in places), index.is_scalar)


def _is_within(place: _Dimension, source: _Dimensions) -> bool:
    return isinstance(place, int) and -len(source.items) <= place < len(source.items)


def _sliced(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    source, *limits = inputs
    if len(limits) < 2 or not all(item.is_fixed and len(item.items) == 1 for item in limits):
        return None
    start, stop, _, step = [*(item.items[0] for item in limits), *(0, 1)[len(limits) - 2 :]]
    return _Dimensions(source.items[start:stop:step]) if step > 0 else None


def _concatenated(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    return _Dimensions(tuple(item for part in inputs for item in part.items))


def _unsqueezed(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    return _Dimensions(inputs[0].items) if inputs[0].is_scalar else None


def _squeezed(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    return _Dimensions(inputs[0].items, is_scalar=True) if len(inputs[0].items) == 1 else None


def _cast(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    from onnx import TensorProto

    return inputs[0] if attributes["to"] == TensorProto.INT64 else None


def _same(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
    return inputs[0]


_Number = _Dimension | None
"""``None`` is a number that is not known."""


def _each(
    operation: Callable[..., _Number],
) -> Callable[[Sequence[_Dimensions], Mapping[str, Any]], _Dimensions | None]:
    """An operation on each dimension."""

    def calculate(inputs: Sequence[_Dimensions], attributes: Mapping[str, Any]) -> _Dimensions | None:
        length = max(len(item.items) for item in inputs)
        if any(len(item.items) not in (1, length) for item in inputs):
            return None
        columns = [item.items if len(item.items) == length else item.items * length for item in inputs]
        results = [operation(*numbers) for numbers in zip(*columns, strict=True)]
        known = tuple(result for result in results if result is not None)
        is_scalar = all(item.is_scalar for item in inputs)
        return _Dimensions(known, is_scalar) if len(known) == length else None

    return calculate


def _scaled(first: _Dimension, second: _Dimension) -> _Number:
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    return first if second == 1 else second if first == 1 else None


def _shifted(first: _Dimension, second: _Dimension) -> _Number:
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return first if second == 0 else second if first == 0 else None


def _divided(first: _Dimension, second: _Dimension) -> _Number:
    return first if second == 1 else None


def _equal(first: _Dimension, second: _Dimension) -> _Number:
    """A batch is at least one element."""
    if isinstance(first, int) and isinstance(second, int):
        return int(first == second)
    number = first if isinstance(first, int) else second
    return 0 if isinstance(number, int) and number < 1 else None


def _chosen(condition: _Dimension, first: _Dimension, second: _Dimension) -> _Number:
    return None if condition == _BATCH else first if condition else second


_STEPS: Mapping[str, Callable[[Sequence[_Dimensions], Mapping[str, Any]], _Dimensions | None]] = {
    "Add": _each(_shifted),
    "Cast": _cast,
    "Concat": _concatenated,
    "Div": _each(_divided),
    "Equal": _each(_equal),
    "Gather": _gathered,
    "Identity": _same,
    "Mul": _each(_scaled),
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
    "Where": _each(_chosen),
}
"""What operators make of dimensions of which some are the batch."""
