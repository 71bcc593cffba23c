"""Operators that put elements in another order: they move nothing until an operation needs its input in place.

What such an operator does to a tensor it does to the numbers of the tensor's elements, by ONNX's reference evaluator.
So those that follow each other become one, and those that undo each other nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.permutation import FILL
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators import shapes
from openmxu.compiler.operators.elements import tabulate
from openmxu.compiler.operators.lanes import settled
from openmxu.compiler.operators.resize import nearest_positions
from openmxu.compiler.operators.values import (
    Constant,
    FloatInput,
    Integers,
    Moved,
    Quantized,
    Real,
    RealConstant,
    Sums,
    Value,
    WideReal,
)

if TYPE_CHECKING:
    import onnx

__all__ = ["concatenate", "move", "pad", "qlinear_concatenate", "resize"]

_OPEN_BATCHES = (2, 3)
"""Batches with which an operator is tried out where the model leaves the batch open."""
_LARGEST = 1 << 27
"""Elements, of all batch elements together."""


def move(here: Visit) -> Value | tuple[Value, ...]:
    """Any operator whose first input is moved and whose other ones are constants."""
    source = here.input(0)
    if not all(isinstance(value, Constant) for value in here.inputs[1:] if value is not None):
        raise here.unsupported("its other inputs must be constants")
    if isinstance(source, RealConstant):
        return _moved_constant(here, source)
    constants = [value.array for value in here.inputs[1:] if value is not None]
    return _moved(here, helper.make_node(here.node.op_type, here.node.input, here.node.output), [source], constants)


def concatenate(here: Visit) -> Value:
    """Concat of tensors of the network."""
    if here.attributes.get("axis") == 0:
        raise here.unsupported("the batch must stay the first dimension")
    names = [f"input {index}" for index in range(len(here.inputs))]
    node = helper.make_node("Concat", names, [here.output])
    return _moved(here, node, here.inputs, [])


def qlinear_concatenate(here: Visit) -> Value:
    """com.microsoft.QLinearConcat: inputs of different scales, which are changed to that of the output."""
    reals = []
    for first in range(2, len(here.inputs), 3):
        value = here.integers(first)
        scale = np.float32(here.scale(first + 1, "a scale"))
        reals.append(Quantized(value, scale, here.zero_point(first + 2, "a zero point", value.dtype)).real())
    if not reals or here.attributes.get("axis") == 0:
        raise here.unsupported("the batch must stay the first dimension")
    node = helper.make_node("Concat", [f"input {index}" for index in range(len(reals))], [here.output])
    value = _moved(here, node, reals, [])
    zero_point, dtype = here.output_zero_point(1, "Y_zero_point", "uint8")
    return tabulate(here, value, np.float32(here.scale(0, "Y_scale")), zero_point, dtype)


def pad(here: Visit) -> Value:
    """Pad by a constant, or by elements of the tensor itself."""
    source = here.input(0)
    pads = here.constant(1, "the number of elements")
    value = here.input(2)
    fill = 0.0
    if value is not None:
        if not isinstance(value, (Constant, RealConstant)) or value.array.size != 1:
            raise here.unsupported("the value must be a constant scalar")
        fill = float(value.array.reshape(()))
    axes = [] if here.input(3) is None else [here.constant(3, "the axes")]
    if here.attributes.get("mode", b"constant") == b"constant" and (pads < 0).any():
        raise here.unsupported("negative numbers of elements are not supported; Slice is")
    node = helper.make_node("Pad", ["data", "pads", "fill", *(["axes"] if axes else [])], [here.output])
    return _moved(here, node, [source], [pads, np.asarray(FILL, np.int64), *axes], fill)


def resize(here: Visit) -> Value:
    """Resize to the nearest element."""
    parts, (index,), fills = _numbered(here, [here.input(0)])
    for axis, positions in enumerate(nearest_positions(here, index.shape)):
        index = index.take(positions, axis)
    return _result(here, here.input(0), parts, index, fills)


def _moved_constant(here: Visit, source: RealConstant) -> RealConstant:
    if here.node.op_type == "Transpose":
        dimensions = source.integers.ndim
        order = list(here.attributes.get("perm", range(dimensions)[::-1]))
        axis = order.index(source.axis % dimensions) if source.scale.size > 1 else source.axis
        return dataclasses.replace(source, integers=source.integers.transpose(order), axis=axis)
    return shapes.reshaped_constant(here.node, here.name, here.builder.opset, source, here.inputs[1:])


def _moved(
    here: Visit,
    node: onnx.NodeProto,
    sources: Sequence[Value | None],
    constants: Sequence[NDArray[Any]],
    fill: float | None = None,
) -> Value | tuple[Value, ...]:
    """What ``node`` makes of ``sources``, its first inputs; ``constants`` are the others."""
    for name, value in here.attributes.items():
        if not any(item.name == name for item in node.attribute):
            node.attribute.append(helper.make_attribute(name, value))
    own = set() if fill is None else {fill}
    parts, numbers, fills = _numbered(here, sources)
    if len(fills | own) > 1:  # one at a time
        sources = [settled(here, source) if isinstance(source, Moved) else source for source in sources]
        parts, numbers, fills = _numbered(here, sources)
    fills |= own
    results = [_result(here, sources[0], parts, index, fills) for index in _applied(here, node, numbers, constants)]
    return tuple(results) if len(results) > 1 else results[0]


def _numbered(
    here: Visit, sources: Sequence[Value | None]
) -> tuple[list[Integers | Real], list[NDArray[np.int64]], set[float]]:
    """The parts of all sources one after the other; for each source the numbers of its elements; what fills it."""
    parts: list[Integers | Real] = []
    numbers, fills = [], set()
    first = 0
    for source in sources:
        match source:
            case Integers() | Real():
                own, index = (source,), np.arange(int(np.prod(source.shape))).reshape(source.shape)
            case Moved():
                own, index = source.parts, source.index
                if (index == FILL).any():
                    fills.add(source.fill)
            case FloatInput() | Sums() if len(sources) == 1:
                own, index = (), np.arange(int(np.prod(source.shape))).reshape(source.shape)
            case _:
                raise here.unsupported("supported on int8 and uint8 tensors, or through DequantizeLinear")
        numbers.append(np.where(index == FILL, FILL, index + first))
        parts += own
        first += sum(int(np.prod(part.shape)) for part in own)
    if len({type(part) for part in parts}) > 1 or len({_dtype(part) for part in parts}) > 1:
        raise here.unsupported("its inputs must be of the same type")
    return parts, numbers, fills


def _dtype(part: Integers | Real) -> str:
    return part.dtype if isinstance(part, Integers) else "float32"


def _applied(
    here: Visit, node: onnx.NodeProto, numbers: Sequence[NDArray[np.int64]], constants: Sequence[NDArray[Any]]
) -> list[NDArray[np.int64]]:
    """The numbers of the elements of each result."""
    count = max(int(index.max(initial=0)) for index in numbers) + 1
    results: list[NDArray[np.int64]] = []
    for batch in (here.builder.batch,) if here.builder.batch else _OPEN_BATCHES:
        if batch * count > _LARGEST:
            raise here.unsupported("the tensor is too large")
        offsets = np.arange(batch) * count
        inputs = [_batched(index, offsets) for index in numbers]
        arrays = shapes.fold(node, here.name, here.builder.opset, [*inputs, *constants])
        results = []
        for array in arrays:
            if array.ndim < 1 or len(array) != batch or not np.array_equal(array, _batched(array[0], offsets)):
                raise here.unsupported("the batch must stay the first dimension")
            if array.size == 0:
                raise ModelError(f"node {here.name!r}: its result of shape {array.shape} is empty")
            results.append(array[0].astype(np.int64))
    return results


def _batched(index: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    shape = (-1, *[1] * index.ndim)
    return np.where(index == FILL, FILL, index + offsets.reshape(shape))


def _result(
    here: Visit, source: Value, parts: Sequence[Integers | Real], index: NDArray[np.int64], fills: set[float]
) -> Value:
    """The value whose elements have the numbers ``index``."""
    fills = fills if (index == FILL).any() else set()
    if len(fills) > 1:
        raise here.unsupported("its inputs are padded with different values")
    parts, index = _needed(parts, index)
    is_in_order = not fills and np.array_equal(index.reshape(-1), np.arange(index.size))
    if isinstance(source, (FloatInput, Sums, WideReal)):
        if not is_in_order:
            raise here.unsupported("supported between quantized tensors")
        return dataclasses.replace(source, shape=index.shape)
    if len(parts) == 1 and is_in_order and index.size == int(np.prod(parts[0].shape)):
        return _reshaped(parts[0], index.shape)
    integers = [part.integers if isinstance(part, Real) else part for part in parts]
    if all(here.builder.is_open(part) for part in integers):
        raise here.unsupported("the host puts inputs in order")
    return Moved(tuple(parts), index, next(iter(fills), 0.0), here.name)


def _needed(
    parts: Sequence[Integers | Real], index: NDArray[np.int64]
) -> tuple[list[Integers | Real], NDArray[np.int64]]:
    """The parts that elements come from, and the numbers among those."""
    kept, first = [], 0
    result = index.copy()
    for part in parts:
        count = int(np.prod(part.shape))
        if ((index >= first) & (index < first + count)).any():
            kept.append(part)
        else:
            result[index >= first + count] -= count
        first += count
    return kept or list(parts[:1]), result


def _reshaped(part: Integers | Real, shape: tuple[int, ...]) -> Integers | Real:
    if isinstance(part, Integers):
        return dataclasses.replace(part, shape=shape)
    return dataclasses.replace(part, integers=dataclasses.replace(part.integers, shape=shape))
