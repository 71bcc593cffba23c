"""Real factors and offsets for each channel: BatchNormalization, and arithmetic with constants that does the same.

Behind the array they become part of its scales and biases. A tensor by itself is multiplied by a diagonal matrix first:
the hardware adds integers before it scales, and sums that are :data:`_GAIN` times as large leave so much finer a grid
for what is added.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.window import Window
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.lanes import as_image, as_rows
from openmxu.compiler.operators.matrix import check_wide_sums
from openmxu.compiler.operators.values import Constant, Quantized, RealConstant, Sums, Value

__all__ = ["batch_normalization", "scaled_by_constant"]

_GAIN = 127
"""The largest weight that fits int8 with either sign."""


def batch_normalization(here: Visit) -> Value:
    """BatchNormalization with fixed statistics: between DequantizeLinear and QuantizeLinear, or behind the array."""
    if here.attributes.get("training_mode", 0) or any(here.node.output[1:]):
        raise here.unsupported("training is not supported")
    names = ("scale", "offset", "mean", "variance")
    scale, offset, mean, variance = (_vector(here, index, name) for index, name in enumerate(names, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = scale / np.sqrt(variance + float(here.attributes.get("epsilon", 1e-5)))
    source = here.input(0)
    if not isinstance(source, Sums):
        quantized = here.quantized(0)
        source = _diagonal(here, quantized, is_image=len(quantized.value.shape) > 1)
    return _scaled(here, source, factor, offset - mean * factor)


def scaled_by_constant(here: Visit) -> Value | None:
    """Add, Sub, Mul or Div of a tensor and constants for its channels; ``None`` where that is not what the node is."""
    first, second = here.input(0), here.input(1)
    constant, other, is_first = (first, second, True) if isinstance(first, Constant) else (second, first, False)
    if not isinstance(constant, Constant) or constant.array.dtype != np.float32:
        return None
    if not isinstance(other, Sums) and Quantized.of(other) is None:
        return None
    found = _channels(constant.array, other.shape)
    if found is None or (isinstance(other, Sums) and found[1] not in (None, other.channels_first)):
        return None
    values, is_image = found
    if not isinstance(other, Sums):
        quantized = Quantized.of(other)
        here.bytes_of(quantized.value)
        other = _diagonal(here, quantized, is_image=len(quantized.value.shape) > 1 if is_image is None else is_image)
    one = np.ones(1)
    match here.node.op_type:
        case "Add":
            return _scaled(here, other, one, values)
        case "Sub":
            return _scaled(here, other, -one, values) if is_first else _scaled(here, other, one, -values)
        case "Mul":
            return _scaled(here, other, values, 0 * one)
        case "Div" if not is_first:
            with np.errstate(divide="ignore"):
                return _scaled(here, other, 1 / values, 0 * one)
    return None


def _vector(here: Visit, index: int, name: str) -> NDArray[np.float64]:
    value = here.input(index)
    if not isinstance(value, (Constant, RealConstant)) or value.array.ndim != 1:
        raise here.unsupported(f"its {name} must be a constant with a value for each channel")
    return value.array.astype(np.float64)


def _channels(array: NDArray[Any], shape: tuple[int, ...]) -> tuple[NDArray[np.float64], bool | None] | None:
    """The values of an array for the channels of a tensor, and whether channels are its first dimension.

    ``None`` for the dimension where there is only one, or one value; ``None`` altogether where the array has other
    values than one for each channel.
    """
    if array.ndim == len(shape) + 1 and array.shape[0] == 1:
        array = array[0]
    long = [axis - array.ndim for axis, length in enumerate(array.shape) if length > 1]
    if array.ndim > len(shape) or len(long) > 1:
        return None
    values = array.astype(np.float64).reshape(-1)
    if not long:
        return values, None
    if values.size != shape[long[0]]:
        return None
    if len(shape) == 1:
        return values, None
    if long[0] == -1:
        return values, False
    return (values, True) if long[0] == -len(shape) else None


def _diagonal(here: Visit, quantized: Quantized, is_image: bool) -> Sums:
    """A tensor as sums: each element times :data:`_GAIN`."""
    source = (as_image if is_image else as_rows)(here, quantized.value)
    tensor = here.builder.tensors[source.tensor]
    operation = Convolution(
        name=here.name,
        sources=(source.tensor,),
        target="",
        result=None,
        weights=np.full((tensor.channels, 1, 1, 1), _GAIN, np.int16),
        bias=np.zeros(tensor.channels, np.int32),
        window=Window(),
        groups=tensor.channels,
        input_signed=source.dtype == "int8",
        zero_point=quantized.zero_point,
    )
    scale = here.product_of_scales("the scale ÷ 127", quantized.scale, np.float32(1 / _GAIN))
    return Sums(source.shape, operation, tensor, is_image, (scale,), is_rounded=True)


def _scaled(here: Visit, sums: Sums, factor: NDArray[np.float64], offset: NDArray[np.float64]) -> Sums:
    """Sums of the array times a factor, plus an offset, both for each channel."""
    if sums.is_limited or not sums.is_from_array or not sums.scales:
        raise here.unsupported("supported behind Conv, Gemm and MatMul, and on int8 and uint8 through DequantizeLinear")
    operation = sums.operation
    channels = operation.outputs
    if factor.size not in (1, channels) or offset.size not in (1, channels):
        raise ModelError(f"node {here.name!r}: {max(factor.size, offset.size)} values do not fit {channels} channels")
    factor, offset, scale = (np.broadcast_to(item, channels).copy() for item in (factor, offset, sums.scales[0]))
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        raise ModelError(f"node {here.name!r}: its factors and offsets must be finite numbers")
    sign = np.sign(factor).astype(np.int16)
    weights = operation.weights * sign.reshape(-1, 1, 1, 1)
    # What is multiplied by 0 keeps the scale that it has, for the offset.
    size = np.where(factor == 0, 1, np.abs(factor))
    scale = here.product_of_scales("scale × factor", scale, size.astype(np.float32))
    bias = operation.bias.astype(np.int64) * sign + np.rint(offset / scale.astype(np.float64))
    if not np.all(np.abs(bias) < 2**31):
        raise ModelError(f"node {here.name!r}: its offset does not fit int32 in units of input scale × factor")
    operation = dataclasses.replace(operation, weights=weights, bias=bias.astype(np.int32))
    check_wide_sums(here, operation)
    return dataclasses.replace(sums, operation=operation, scales=(scale,))
