"""Values for the dimensions that a model leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["Shapes", "with_shapes"]

Shapes = Mapping[str, int | Sequence[int]]
"""The value of an open dimension by its name, or all dimensions of an input by the input's; 0 leaves one open."""


def with_shapes(model: onnx.ModelProto, shapes: Shapes) -> onnx.ModelProto:
    """A copy of a model with some of its open dimensions fixed.

    Raises
    ------
    ModelError
        There is no such input or dimension, or it is fixed already to something else.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {item.name for item in copy.graph.initializer}
    inputs = {item.name: item for item in copy.graph.input if item.name not in known}
    named = {dim.dim_param for item in inputs.values() for dim in _dims(item) if dim.dim_param}
    values: dict[str, int] = {}
    for name, value in shapes.items():
        if isinstance(value, int) and name in named:
            _set(values, name, value)
        elif not isinstance(value, int) and name in inputs:
            _set_input(inputs[name], value, values)
        else:
            what = "open dimension" if isinstance(value, int) else "input"
            there = ", ".join(sorted(named if isinstance(value, int) else inputs)) or "none"
            raise ModelError(f"the model has no {what} {name!r}; there are: {there}")
    for item in (*copy.graph.input, *copy.graph.output, *copy.graph.value_info):
        for dim in _dims(item):
            if values.get(dim.dim_param):
                dim.dim_value = values[dim.dim_param]
    return copy


def _set_input(item: onnx.ValueInfoProto, shape: Sequence[int], values: dict[str, int]) -> None:
    """Fix the dimensions of an input that have no name, and note the values of those that have."""
    dims = list(_dims(item))
    if len(dims) != len(shape):
        raise ModelError(f"input {item.name!r} has {len(dims)} dimensions, not {len(shape)}")
    for index, (dim, value) in enumerate(zip(dims, shape, strict=True)):
        if dim.dim_value > 0 and value not in (0, dim.dim_value):
            raise ModelError(f"dimension {index} of input {item.name!r} is {dim.dim_value} already, not {value}")
        if dim.dim_param:
            _set(values, dim.dim_param, value)
        elif value:
            dim.dim_value = value


def _set(values: dict[str, int], name: str, value: int) -> None:
    if value < 0:
        raise ModelError(f"dimension {name!r} must be positive, not {value}")
    if value and values.setdefault(name, value) != value:
        raise ModelError(f"dimension {name!r} cannot be both {values[name]} and {value}")


def _dims(item: onnx.ValueInfoProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    yield from item.type.tensor_type.shape.dim
