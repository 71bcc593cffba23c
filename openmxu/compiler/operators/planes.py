"""Operators that take the maximum or the average of windows."""

from __future__ import annotations

import dataclasses

import numpy as np

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Pooling
from openmxu.compiler.ir.permutation import FILL
from openmxu.compiler.ir.window import Window
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.geometry import read_window
from openmxu.compiler.operators.lanes import as_image, settled
from openmxu.compiler.operators.values import Integers, Moved, Quantized, Sums, Value

__all__ = [
    "average_pool",
    "global_average_pool",
    "global_max_pool",
    "max_pool",
    "qlinear_average_pool",
    "qlinear_global_average_pool",
    "reduce_max",
    "reduce_mean",
]

_MOST_PADDING = 255
_MOST_WINDOW = (1 << 16) - 1
"""Rows or columns that POOLING_WINDOW holds."""


def max_pool(here: Visit) -> Value:
    """MaxPool of integers, of real numbers just dequantized, or of sums."""
    if len(here.node.output) > 1 and here.node.output[1]:
        raise here.unsupported("the indices of the maxima are not supported")
    if max(here.attributes.get("dilations", (1,))) > 1:
        return _dilated_maximum(here)
    pooled = _real_maximum(here)
    if pooled is not None:
        return pooled
    if isinstance(here.input(0), (Integers, Moved)):
        return _maximum(here, here.integers(0))
    raise here.unsupported("supported on int8 and uint8, behind DequantizeLinear and behind Conv")


def global_max_pool(here: Visit) -> Value:
    """GlobalMaxPool of real numbers just dequantized, or of sums."""
    pooled = _real_maximum(here, whole=True)
    if pooled is None:
        raise here.unsupported("supported on int8 and uint8 through DequantizeLinear, and behind Conv")
    return pooled


def average_pool(here: Visit) -> Value:
    """AveragePool between DequantizeLinear and QuantizeLinear."""
    source = here.quantized(0)
    return _average(here, source.value, source.zero_point, source.scale)


def global_average_pool(here: Visit) -> Value:
    """GlobalAveragePool between DequantizeLinear and QuantizeLinear."""
    source = here.quantized(0)
    return _average(here, source.value, source.zero_point, source.scale, whole=True)


def reduce_mean(here: Visit) -> Value:
    """ReduceMean over all dimensions but one, between DequantizeLinear and QuantizeLinear."""
    source = here.quantized(0)
    image, shape = _planes(here, source.value)
    return dataclasses.replace(_average(here, image, source.zero_point, source.scale, whole=True), shape=shape)


def reduce_max(here: Visit) -> Value:
    """ReduceMax over all dimensions but one, of integers or of real numbers just dequantized."""
    quantized = Quantized.of(here.input(0))
    image, shape = _planes(here, here.integers(0) if quantized is None else quantized.value)
    maximum = dataclasses.replace(_maximum(here, image, whole=True), shape=shape)
    return maximum if quantized is None else dataclasses.replace(quantized, value=maximum).real()


def _planes(here: Visit, value: Integers | Moved) -> tuple[Moved, tuple[int, ...]]:
    """What the axes of a node reduce as planes, one for each element of the dimension that stays, and the shape of the
    results."""
    shape = value.shape
    axes = here.attributes.get("axes", ())
    if here.input(1) is not None:
        axes = [int(axis) for axis in here.constant(1, "the axes").reshape(-1)]
    reduced = sorted(axis % (len(shape) + 1) - 1 for axis in axes)
    kept = [axis for axis in range(len(shape)) if axis not in reduced]
    if -1 in reduced or len(kept) != 1 or len(shape) < 2:
        raise here.unsupported("supported over all dimensions but the batch and one other")
    moved = _as_moved(here, value)
    lengths = [shape[axis] for axis in reduced]
    plane = lengths if len(lengths) == 2 else [int(np.prod(lengths))]
    index = moved.index.transpose(*kept, *reduced).reshape(shape[kept[0]], *plane)
    keeps = here.attributes.get("keepdims", 1)
    return (
        dataclasses.replace(moved, index=np.ascontiguousarray(index), name=here.name),
        tuple(1 if axis in reduced else length for axis, length in enumerate(shape) if keeps or axis in kept),
    )


def _as_moved(here: Visit, value: Integers | Moved) -> Moved:
    """A tensor as elements that are in order already."""
    if isinstance(value, Moved):
        return value
    return Moved((value,), np.arange(int(np.prod(value.shape))).reshape(value.shape), 0, here.name)


def qlinear_average_pool(here: Visit) -> Value:
    """com.microsoft.QLinearAveragePool."""
    return _qlinear(here, whole=False)


def qlinear_global_average_pool(here: Visit) -> Value:
    """com.microsoft.QLinearGlobalAveragePool."""
    return _qlinear(here, whole=True)


def _qlinear(here: Visit, whole: bool) -> Value:
    if here.attributes.get("channels_last", 0):
        raise here.unsupported("channels_last is not supported")
    source = here.integers(0)
    zero_point = here.zero_point(2, "x_zero_point", source.dtype)
    sums = _average(here, source, zero_point, np.float32(here.scale(1, "x_scale")), whole)
    output, dtype = here.output_zero_point(4, "y_zero_point", source.dtype)
    return here.builder.close(sums, here.output, np.float32(here.scale(3, "y_scale")), output, dtype)


def _real_maximum(here: Visit, whole: bool = False) -> Value | None:
    """The maximum of sums or of dequantized values, over windows or whole planes; ``None`` for other inputs."""
    source = here.input(0)
    if isinstance(source, Sums) and source.channels_first and source.scales:
        before = source.tensor
        for window in source.pooling:
            height, width = window.outputs(before.height, before.width)
            before = dataclasses.replace(before, height=height, width=width)
        window = _pooling_window(here, before, len(source.shape) - 1, whole)
        shape = _pooled_shape(source.shape, window, before)
        return dataclasses.replace(source, shape=shape, pooling=(*source.pooling, window))
    quantized = Quantized.of(source)
    if quantized is None:
        return None
    return dataclasses.replace(quantized, value=_maximum(here, quantized.value, whole)).real()


def _maximum(here: Visit, value: Integers | Moved, whole: bool = False) -> Integers:
    source = as_image(here, value)
    image = here.builder.tensors[source.tensor]
    window = _pooling_window(here, image, len(source.shape) - 1, whole)
    here.builder.add_maximum(here.name, source.tensor, here.output, window)
    return Integers(here.output, _pooled_shape(source.shape, window, image), source.dtype)


def _dilated_maximum(here: Visit) -> Value:
    """The maximum over positions that do not follow each other: they are copied side by side."""
    quantized = Quantized.of(here.input(0))
    if quantized is None and isinstance(here.input(0), Sums):
        raise here.unsupported("pooling with dilations is supported on int8 and uint8, not behind Conv")
    value = here.integers(0) if quantized is None else quantized.value
    if isinstance(value, Moved) and (value.index == FILL).any():
        value = settled(here, value)
    dtype = value.dtype
    channels, *plane = value.shape
    height, width = (1, *plane) if len(plane) == 1 else plane
    kernel = [*[1] * (2 - len(plane)), *here.attributes.get("kernel_shape", ())]
    window = read_window(here, kernel, Tensor(height, width, channels, True), len(plane))
    moved = _as_moved(here, value)
    index = moved.index.reshape(channels, height, width)
    for axis, outputs, size, stride, dilation, before, length in (
        (1, window.outputs(height, width)[0], window.height, window.stride_y, window.dilation_y, window.top, height),
        (2, window.outputs(height, width)[1], window.width, window.stride_x, window.dilation_x, window.left, width),
    ):
        positions = (np.arange(outputs)[:, np.newaxis] * stride - before + np.arange(size) * dilation).reshape(-1)
        taken = index.take(np.clip(positions, 0, length - 1), axis)
        is_inside = np.expand_dims((positions >= 0) & (positions < length), [item for item in range(3) if item != axis])
        index = np.where(is_inside, taken, FILL)
    copied = as_image(here, Moved(moved.parts, index, np.iinfo(dtype).min, here.name))
    aside = Window(window.height, window.width, window.height, window.width)
    here.builder.add_maximum(here.name, copied.tensor, here.output, aside)
    outputs = window.outputs(height, width)
    maximum = Integers(here.output, (channels, *outputs[2 - len(plane) :]), dtype)
    return maximum if quantized is None else dataclasses.replace(quantized, value=maximum).real()


def _average(here: Visit, value: Integers | Moved, zero_point: int, scale: np.float32, whole: bool = False) -> Sums:
    source = as_image(here, value)
    image = here.builder.tensors[source.tensor]
    window = _pooling_window(here, image, len(source.shape) - 1, whole)
    counts_padding = not whole and bool(here.attributes.get("count_include_pad", 0))
    if counts_padding and here.attributes.get("ceil_mode", 0):
        raise here.unsupported("count_include_pad and ceil_mode exclude each other")
    operation = Pooling(
        name=here.name,
        sources=(source.tensor,),
        target="",
        result=None,
        window=window,
        maximum=False,
        counts_padding=counts_padding,
        input_signed=source.dtype == "int8",
        zero_point=zero_point,
    )
    height, width = window.outputs(image.height, image.width)
    tensor = Tensor(height, width, image.channels, False)
    shape = _pooled_shape(source.shape, window, image)
    return Sums(shape, operation, tensor, True, (np.asarray(scale, np.float32),))


def _pooling_window(here: Visit, image: Tensor, dimensions: int, whole: bool) -> Window:
    """The window of the node's attributes, or the whole plane."""
    if whole:
        if max(image.height, image.width) > _MOST_WINDOW:
            raise here.unsupported(f"planes of more than {_MOST_WINDOW} rows or columns are not supported")
        return Window(image.height, image.width)
    kernel = list(here.attributes.get("kernel_shape", ()))
    if len(kernel) != dimensions:
        raise ModelError(f"node {here.name!r}: kernel_shape must have {dimensions} values, not {len(kernel)}")
    window = read_window(here, [1] * (2 - dimensions) + kernel, image, dimensions)
    if max(window.dilation_y, window.dilation_x) > 1:
        raise here.unsupported("pooling with dilations is not supported")
    if max(window.top, window.left) > _MOST_PADDING:
        raise here.unsupported(f"pooling with more than {_MOST_PADDING} rows or columns of padding is not supported")
    for outputs, stride, before, size, length in (
        (window.outputs(image.height, image.width)[0], window.stride_y, window.top, window.height, image.height),
        (window.outputs(image.height, image.width)[1], window.stride_x, window.left, window.width, image.width),
    ):
        if before >= size or (outputs - 1) * stride - before >= length:
            raise here.unsupported("windows that lie in the padding as a whole are not supported")
    return window


def _pooled_shape(shape: tuple[int, ...], window: Window, image: Tensor) -> tuple[int, ...]:
    height, width = window.outputs(image.height, image.width)
    return (shape[0], height, width) if len(shape) == 3 else (shape[0], width)
