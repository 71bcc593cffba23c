"""Calibration data: checked against the model's inputs and cut into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from openmxu.compiler.operators.sequences import batch_axes
from openmxu.program import InputError

__all__ = ["calibration_batches", "has_no_batch"]

_BATCH = 32
"""Batch size for ONNX Runtime if the model does not fix it."""


def calibration_batches(
    model: onnx.ModelProto, data: NDArray[Any] | Mapping[str, NDArray[Any]]
) -> list[dict[str, NDArray[Any]]]:
    """The batches of inputs for ONNX Runtime.

    Raises
    ------
    InputError
        An input is missing or unknown, has the wrong type or shape, holds no elements or values that are not finite, or
        the number of elements is not a multiple of the model's batch.
    """
    initializers = {item.name for item in model.graph.initializer}
    inputs = {item.name: item for item in model.graph.input if item.name not in initializers}
    given = dict(data) if isinstance(data, Mapping) else dict.fromkeys(inputs, data)
    if not isinstance(data, Mapping) and len(inputs) != 1:
        raise InputError(f"the model has the inputs {', '.join(inputs)}: give calibration data by name")
    if given.keys() != inputs.keys():
        names = ", ".join(given) or "nothing"
        raise InputError(f"calibration data is for {names}, but the inputs are {', '.join(inputs)}")
    arrays = {name: np.asarray(array) for name, array in given.items()}
    axes = dict.fromkeys(inputs, 0) | batch_axes(model.graph.node)
    if has_no_batch(list(inputs.values()), arrays, axes):
        for name, array in arrays.items():
            _check_whole(inputs[name], array)
        return [arrays]
    batches = [_check(inputs[name], array, axes[name]) for name, array in arrays.items()]
    fixed = {batch for batch in batches if batch is not None}
    counts = {array.shape[axes[name]] for name, array in arrays.items()}
    if len(counts) != 1:
        raise InputError(f"all inputs must have calibration data for the same batch, not for {sorted(counts)}")
    count, batch = counts.pop(), max(fixed, default=_BATCH)
    if count == 0 or (fixed and count % batch):
        wanted = f"a multiple of the model's batch of {batch}" if fixed else "some"
        raise InputError(f"calibration data must have {wanted} elements, not {count}")
    return [
        {
            name: np.take(array, range(start, min(start + batch, count)), axis=axes[name])
            for name, array in arrays.items()
        }
        for start in range(0, count, batch)
    ]


def has_no_batch(
    inputs: Sequence[onnx.ValueInfoProto], arrays: Mapping[str, NDArray[Any]], axes: Mapping[str, int]
) -> bool:
    """Whether the arrays for some inputs cannot be several elements of one batch, but fit as they are."""
    shapes = [np.shape(arrays.get(item.name, ())) for item in inputs]
    counts = {shape[axes.get(item.name, 0)] for item, shape in zip(inputs, shapes, strict=True) if shape}
    wanted = [[dim.dim_value for dim in item.type.tensor_type.shape.dim] for item in inputs]
    fits = all(
        len(shape) == len(dims) and all(dim in (0, length) for dim, length in zip(dims, shape, strict=True))
        for shape, dims in zip(shapes, wanted, strict=True)
    )
    return fits and (len(counts) > 1 or any(not shape for shape in shapes))


def _check_whole(item: onnx.ValueInfoProto, array: NDArray[Any]) -> None:
    """Check the array for an input without a batch, whose shape fits."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
    if array.dtype != dtype:
        raise InputError(f"calibration data for {item.name!r} must be {dtype}, not {array.dtype}")
    _check_finite(item.name, array)


def _check(item: onnx.ValueInfoProto, array: NDArray[Any], axis: int) -> int | None:
    """Check one input; returns its fixed batch, which is dimension ``axis``, if it has one."""
    dims = list(item.type.tensor_type.shape.dim) or [onnx.TensorShapeProto.Dimension()]
    batch = dims.pop(axis)
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
    lengths = array.shape[:axis] + array.shape[axis + 1 :]
    fits = array.ndim == len(shape) + 1 and all(
        wanted in (None, length) for wanted, length in zip(shape, lengths, strict=True)
    )
    if not fits or array.dtype != dtype:
        dimensions = [str(length or "any") for length in shape]
        dimensions.insert(axis, "batch")
        wanted = ", ".join(dimensions)
        raise InputError(
            f"calibration data for {item.name!r} must be {dtype} of shape ({wanted}), "
            f"not {array.dtype} of shape {array.shape}"
        )
    _check_finite(item.name, array)
    return batch.dim_value if batch.HasField("dim_value") else None


def _check_finite(name: str, array: NDArray[Any]) -> None:
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        raise InputError(f"calibration data for {name!r} must be finite")
