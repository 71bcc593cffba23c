"""Operators that the array executes: convolutions and matrix products."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.permutation import FILL
from openmxu.compiler.ir.window import Window
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators import shapes
from openmxu.compiler.operators.builder import per_column
from openmxu.compiler.operators.geometry import read_window
from openmxu.compiler.operators.lanes import as_image, as_rows, borders, element_numbers, parts_of
from openmxu.compiler.operators.values import Constant, Integers, Moved, Real, RealConstant, Sums, Value
from openmxu.compiler.tensor_products.operators import tensor_product

__all__ = [
    "add_bias",
    "check_wide_sums",
    "conv",
    "conv_integer",
    "gemm",
    "is_per_channel",
    "matmul",
    "matmul_integer",
    "qgemm",
    "qlinear_conv",
    "qlinear_matmul",
]

_ONE = np.float32(1)

_LARGEST_WORD = 1 << 15
"""The largest magnitude of an int16 input."""


def matmul(here: Visit) -> Value:
    """MatMul between DequantizeLinear and QuantizeLinear."""
    return _real_product(here, transposed=False)


def _computed(here: Visit, index: int) -> bool:
    """Whether an input is a tensor of the network rather than weights."""
    return isinstance(here.input(index), (Integers, Moved, Real))


def gemm(here: Visit) -> Value:
    """Gemm between DequantizeLinear and QuantizeLinear."""
    alpha, transposed = _gemm_attributes(here)
    sums = _real_product(here, transposed, alpha)
    _check_gemm(here, sums)
    bias, beta = here.input(2), here.attributes.get("beta", 1.0)
    if isinstance(bias, (Constant, RealConstant)) and beta != 1.0:
        bias = Constant((bias.array * np.float32(beta)).astype(np.float32))
    return sums if bias is None else add_bias(here, sums, bias)


def conv(here: Visit) -> Value:
    """Conv between DequantizeLinear and QuantizeLinear."""
    source = here.quantized(0, wide=True)
    weights = _real_weights(here)
    if weights.scale.size > 1 and weights.axis != 0:
        raise here.unsupported("scales of the weights must be per tensor or per output channel")
    scale = here.product_of_scales("input scale × weight scale", source.scale, weights.scale)
    sums = _convolution(here, source.value, source.zero_point, weights.integers, weights.zero_point, scale)
    bias = here.input(2)
    return sums if bias is None else add_bias(here, sums, bias)


def qlinear_matmul(here: Visit) -> Value:
    """QLinearMatMul."""
    source = here.integers(0)
    scale = here.product_of_scales("a_scale × b_scale", here.scale(1, "a_scale"), here.scale(4, "b_scale", False))
    zero_point = here.zero_point(2, "a_zero_point", source.dtype)
    if _computed(here, 3):
        other = here.integers(3)
        sums = tensor_product(here, source, other, (zero_point, here.zero_point(5, "b_zero_point", other.dtype)), scale)
    else:
        sums = _product(here, source, zero_point, _integer_weights(here, 3), _weight_zero_point(here, 5), scale)
    output, dtype = here.output_zero_point(7, "y_zero_point", source.dtype)
    return here.builder.close(sums, here.output, np.float32(here.scale(6, "y_scale")), output, dtype)


def qgemm(here: Visit) -> Value:
    """ONNX Runtime's QGemm; without an output scale its result is real."""
    alpha, transposed = _gemm_attributes(here)
    source = here.integers(0)
    scales = alpha * here.scale(1, "a_scale"), here.scale(4, "b_scale", False)
    scale = here.product_of_scales("alpha × a_scale × b_scale", *scales)
    zero_point = here.zero_point(2, "a_zero_point", source.dtype)
    weights = _integer_weights(here, 3)
    weights = weights.T if transposed else weights
    sums = _product(here, source, zero_point, weights, _weight_zero_point(here, 5), scale)
    _check_gemm(here, sums)
    if here.input(6) is not None:
        bias = here.constant(6, "the bias")
        if bias.dtype != np.int32 or (bias.size != 1 and not is_per_channel(bias, sums)):
            raise here.unsupported("the bias must be int32, one value or one for each output column")
        sums = _with_integer_bias(here, sums, bias.astype(np.int64))
    if here.input(7) is None:
        return sums
    output, dtype = here.output_zero_point(8, "y_zero_point", source.dtype)
    return here.builder.close(sums, here.output, np.float32(here.scale(7, "y_scale")), output, dtype)


def qlinear_conv(here: Visit) -> Value:
    """QLinearConv."""
    source = here.integers(0)
    scale = here.product_of_scales("x_scale × w_scale", here.scale(1, "x_scale"), here.scale(4, "w_scale", False))
    zero_point = here.zero_point(2, "x_zero_point", source.dtype)
    sums = _convolution(here, source, zero_point, _integer_weights(here, 3), _weight_zero_point(here, 5), scale)
    bias = here.input(8)
    if bias is not None:
        array = here.constant(8, "the bias")
        if array.dtype != np.int32 or array.shape != sums.operation.bias.shape:
            raise ModelError(f"node {here.name!r}: the bias must be int32 with a value for each output channel")
        sums = _with_integer_bias(here, sums, array.astype(np.int64))
    output, dtype = here.output_zero_point(7, "y_zero_point", source.dtype)
    return here.builder.close(sums, here.output, np.float32(here.scale(6, "y_scale")), output, dtype)


def matmul_integer(here: Visit) -> Value:
    """MatMulInteger."""
    source = here.integers(0)
    zero_point = here.zero_point(2, "a_zero_point", source.dtype)
    if _computed(here, 1):
        other = here.integers(1)
        zero_points = zero_point, here.zero_point(3, "b_zero_point", other.dtype)
        return tensor_product(here, source, other, zero_points, None)
    return _product(here, source, zero_point, _integer_weights(here, 1), _weight_zero_point(here, 3), None)


def conv_integer(here: Visit) -> Value:
    """ConvInteger."""
    source = here.integers(0)
    zero_point = here.zero_point(2, "x_zero_point", source.dtype)
    return _convolution(here, source, zero_point, _integer_weights(here, 1), _weight_zero_point(here, 3), None)


def add_bias(here: Visit, sums: Sums, value: Value) -> Sums:
    """Sums of the array with a constant added; a real number becomes the nearest multiple of what a sum of 1 means."""
    reason = f"supported: a constant of 1 or {sums.tensor.channels} values added to the sums of a layer"
    if not isinstance(value, (Constant, RealConstant)):
        raise here.unsupported(reason)
    # The bias of Conv is a vector; elsewhere channels are where the graph sees them.
    is_vector = here.node.op_type == "Conv" and value.array.shape == (sums.tensor.channels,)
    if value.array.size != 1 and not is_vector and not is_per_channel(value.array, sums):
        raise here.unsupported(reason)
    if not sums.scales:
        if value.array.dtype != np.int32:
            raise here.unsupported(f"what is added to int32 sums must be int32, not {value.array.dtype}")
        bias = value.array.astype(np.int64)
    elif isinstance(value, RealConstant) and _is_bias_scale(value, sums.scales[0]):
        bias = value.integers.astype(np.int64)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            bias = np.rint(value.array.reshape(-1).astype(np.float64) / sums.scales[0].astype(np.float64))
    return _with_integer_bias(here, sums, bias)


def is_per_channel(array: NDArray[Any], sums: Sums) -> bool:
    """Whether an array has a value for each channel of the sums, on the axis where the graph sees channels."""
    axis = len(sums.shape) if sums.channels_first else 1
    return array.size == sums.tensor.channels and array.ndim >= axis and array.shape[-axis] == array.size


def _with_integer_bias(here: Visit, sums: Sums, bias: NDArray[Any]) -> Sums:
    operation = sums.operation
    total = operation.bias + np.broadcast_to(bias.reshape(-1), operation.bias.shape)
    if not np.all(np.abs(total) < 2**31):
        raise ModelError(f"node {here.name!r}: the bias does not fit int32 in units of input scale × weight scale")
    operation = dataclasses.replace(operation, bias=total.astype(np.int32))
    check_wide_sums(here, operation)
    return dataclasses.replace(sums, operation=operation)


def check_wide_sums(here: Visit, operation: Convolution) -> None:
    """Check that no sum of int16 inputs, bias included, leaves the 32 bits of the accumulators, where it would wrap.

    Raises
    ------
    UnsupportedOperatorError
        One may.
    """
    if not here.builder.tensors[operation.sources[0]].is_wide:
        return
    magnitudes = np.abs(operation.weights.astype(np.int64)).sum(axis=(1, 2, 3))
    largest = magnitudes * _LARGEST_WORD + np.abs(operation.bias.astype(np.int64))
    if largest.max() >= 2**31:
        column = int(largest.argmax())
        raise here.unsupported(
            f"sums of int16 inputs must stay below 2**31, but those of column {column} may reach {largest[column]:,}, "
            f"which is {_LARGEST_WORD:,} times its weights' magnitudes and its bias; smaller integers as weights or "
            "fewer inputs are supported"
        )


def _is_bias_scale(bias: RealConstant, scale: NDArray[np.float32]) -> bool:
    """Whether the bias already counts in units of the sums, whose scale every quantizer rounds its own way."""
    return (
        bias.integers.dtype == np.int32
        and not bias.zero_point.any()
        and bias.scale.size in (1, scale.size)
        and bool(np.allclose(bias.scale.reshape(-1), scale.reshape(-1), rtol=1e-5, atol=0))
    )


def _real_weights(here: Visit) -> RealConstant:
    value = here.input(1)
    if not isinstance(value, RealConstant) or value.integers.dtype not in (np.int8, np.uint8):
        raise here.unsupported("the weights must be an int8 or uint8 constant through DequantizeLinear")
    return value


def _integer_weights(here: Visit, index: int) -> NDArray[Any]:
    weights = here.constant(index, "the weights")
    if weights.dtype not in (np.int8, np.uint8):
        raise here.unsupported(f"the weights must be int8 or uint8, not {weights.dtype}")
    return weights


def _weight_zero_point(here: Visit, index: int) -> NDArray[np.int32]:
    if here.input(index) is None:
        return np.zeros((), np.int32)
    return here.constant(index, "the zero point of the weights").astype(np.int32)


def _gemm_attributes(here: Visit) -> tuple[np.float32, bool]:
    """alpha, and whether the weights are transposed."""
    alpha = np.float32(here.attributes.get("alpha", 1.0))
    if here.attributes.get("transA", 0):
        raise here.unsupported("transA must be 0")
    if not alpha > 0:
        raise here.unsupported(f"alpha must be positive, not {alpha}")
    return alpha, bool(here.attributes.get("transB", 0))


def _check_gemm(here: Visit, sums: Sums) -> None:
    if len(sums.shape) != 1:
        raise ModelError(f"node {here.name!r}: its input must be a matrix, not {1 + len(sums.shape)}-dimensional")


def _real_product(here: Visit, transposed: bool, alpha: np.float32 = _ONE) -> Sums:
    if _computed(here, 1) and not transposed:
        source, other = here.quantized(0), here.quantized(1)
        scale = here.product_of_scales("the product of both scales", alpha * source.scale, other.scale)
        return tensor_product(here, source.value, other.value, (source.zero_point, other.zero_point), scale)
    source = here.quantized(0, wide=True)
    weights = _real_weights(here)
    if transposed:
        weights = shapes.transposed(weights)
    if weights.scale.size > 1 and weights.axis != weights.integers.ndim - 1:
        raise here.unsupported("scales of the weights must be per tensor or per output column")
    scale = here.product_of_scales("input scale × weight scale", alpha * source.scale, weights.scale)
    return _product(here, source.value, source.zero_point, weights.integers, weights.zero_point, scale)


def _product(
    here: Visit,
    value: Integers | Moved,
    zero_point: int,
    weights: NDArray[np.integer],
    weight_zero_point: NDArray[np.integer],
    scale: NDArray[np.float32] | None,
) -> Sums:
    """The sums of integers times weights of shape (K, N).

    Where the K inputs are all elements of a tensor, in whatever order, the product is a convolution with a window as
    large as the plane.

    Raises
    ------
    ModelError
        Shapes do not fit, or a matrix is empty.
    """
    if weights.ndim != 2 or 0 in weights.shape:
        raise ModelError(f"node {here.name!r}: the weights must be a matrix that is not empty, not {weights.shape}")
    inputs, outputs = weights.shape
    if value.shape[-1] != inputs:
        raise ModelError(
            f"node {here.name!r}: input rows have {value.shape[-1]} values, but the weights' shape is {weights.shape}"
        )
    zero_points = per_column(here.name, "the weight zero point", weight_zero_point, outputs)
    operands = (weights.astype(np.int16) - zero_points.astype(np.int16)).T
    flat = _flat_kernel(here, value, operands) if len(value.shape) == 1 else None
    if flat is None:
        source = as_rows(here, value)
        kernel, window = operands.reshape(outputs, inputs, 1, 1), Window()
    else:
        source, (kernel, window) = parts_of(value)[0], flat
    plane = here.builder.tensors[source.tensor]
    height, width = window.outputs(plane.height, plane.width)
    return _sums(
        here,
        source,
        zero_point,
        np.ascontiguousarray(kernel),
        scale,
        tensor=Tensor(height, width, outputs, False),
        shape=(*value.shape[:-1], outputs),
        channels_first=False,
        window=window,
    )


def _flat_kernel(
    here: Visit, value: Integers | Moved, operands: NDArray[np.int16]
) -> tuple[NDArray[np.int16], Window] | None:
    """The weights (N, K) as a kernel over those positions of a tensor that the K inputs come from.

    ``None`` where they come from several tensors, or one of them twice.
    """
    numbers = element_numbers(here.builder, value)
    if len(parts_of(value)) > 1 or len(np.unique(numbers)) < numbers.size or (numbers == FILL).any():
        return None
    tensor = here.builder.tensors[parts_of(value)[0].tensor]
    position, channel = np.divmod(numbers, tensor.channels)
    y, x = np.divmod(position, tensor.width)
    top, left, height, width = int(y.min()), int(x.min()), int(np.ptp(y)) + 1, int(np.ptp(x)) + 1
    kernel = np.zeros((len(operands), tensor.channels, height, width), np.int16)
    kernel[:, channel, y - top, x - left] = operands
    window = Window(height, width, top=-top, left=-left)
    bottom, right = top + height - tensor.height, left + width - tensor.width
    return kernel, dataclasses.replace(window, bottom=bottom, right=right)


def _convolution(
    here: Visit,
    value: Integers | Moved,
    zero_point: int,
    weights: NDArray[np.integer],
    weight_zero_point: NDArray[np.integer],
    scale: NDArray[np.float32] | None,
) -> Sums:
    """The sums of a convolution with weights as ONNX has them; padding before it becomes its own."""
    around = borders(value) if isinstance(value, Moved) and value.fill == zero_point else None
    source = as_image(here, value if around is None else value.parts[0])
    image = here.builder.tensors[source.tensor]
    top, left, bottom, right = around or (0, 0, 0, 0)
    padded = dataclasses.replace(image, height=image.height + top + bottom, width=image.width + left + right)
    groups = int(here.attributes.get("group", 1))
    if weights.ndim != 1 + len(source.shape) or 0 in weights.shape:
        raise ModelError(f"node {here.name!r}: weights of shape {weights.shape} for an input of shape {source.shape}")
    outputs, per_group = weights.shape[:2]
    if groups < 1 or per_group * groups != image.channels or outputs % groups:
        raise ModelError(
            f"node {here.name!r}: {outputs} × {per_group} channels in {groups} groups do not fit {image.channels}"
        )
    zero_points = per_column(here.name, "the weight zero point", weight_zero_point, outputs)
    kernel = weights.reshape(outputs, per_group, *((1,) if weights.ndim == 3 else ()), *weights.shape[2:])
    operands = kernel.astype(np.int16) - zero_points.astype(np.int16).reshape(-1, 1, 1, 1)
    window = read_window(here, kernel.shape[2:], padded, len(source.shape) - 1)
    window = window.padded(top, left, bottom, right)
    height, width = window.outputs(image.height, image.width)
    return _sums(
        here,
        source,
        zero_point,
        operands,
        scale,
        tensor=Tensor(height, width, outputs, False),
        shape=(outputs, height, width) if len(source.shape) == 3 else (outputs, width),
        channels_first=True,
        window=window,
        groups=groups,
    )


def _sums(
    here: Visit,
    source: Integers,
    zero_point: int,
    weights: NDArray[np.int16],
    scale: NDArray[np.float32] | None,
    *,
    tensor: Tensor,
    shape: tuple[int, ...],
    channels_first: bool,
    window: Window,
    groups: int = 1,
) -> Sums:
    outputs = len(weights)
    operation = Convolution(
        name=here.name,
        sources=(source.tensor,),
        target="",
        result=None,
        weights=weights,
        bias=np.zeros(outputs, np.int32),
        window=window,
        groups=groups,
        input_signed=source.is_signed,
        zero_point=zero_point,
    )
    check_wide_sums(here, operation)
    scales = () if scale is None else (per_column(here.name, "the weight scale", scale, outputs),)
    return Sums(shape, operation, tensor, channels_first, scales)
