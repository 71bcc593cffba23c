"""What each supported ONNX operator means for the network under construction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler import shapes
from openmxu.compiler.builder import Builder, check_scale, node_name, per_column, quantized_limits
from openmxu.compiler.errors import ModelError
from openmxu.compiler.values import (
    Constant,
    FloatInput,
    Integers,
    Real,
    RealConstant,
    RealSums,
    Sums,
    Value,
)
from openmxu.compiler.visit import Visit

if TYPE_CHECKING:
    import onnx

__all__ = ["OPERATORS", "visit"]


def visit(builder: Builder, node: onnx.NodeProto) -> None:
    """Translate one node; its outputs become values of the builder.

    Raises
    ------
    ModelError, UnsupportedOperatorError
    """
    from onnx import helper

    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    inputs = [builder.values[name] if name else None for name in node.input]
    here = Visit(builder, node, node_name(node), attributes, inputs)
    given = [value for value in inputs if value is not None]
    if node.op_type == "DequantizeLinear" or not all(isinstance(value, Constant) for value in given):
        result = OPERATORS[node.op_type](here)
    else:
        result = Constant(shapes.fold(node, here.name, builder.opset, [value.array for value in given]))
    builder.values[node.output[0]] = result


def _quantize_linear(here: Visit) -> Value:
    source = here.input(0)
    scale = here.scale(1, "the scale")
    zero_point_input = here.input(2)
    dtype = "uint8" if zero_point_input is None else here.scalar(2, "the zero point").dtype.name
    if dtype not in ("uint8", "int8") or here.attributes.get("output_dtype"):
        raise here.unsupported("the output must be uint8 or int8, given by the zero point")
    zero_point = here.zero_point(2, "the zero point", dtype)
    builder = here.builder
    match source:
        case FloatInput():
            builder.input_quantization = (dtype, (float(scale),), zero_point)
            return Integers(source.shape, dtype)
        case Sums(scale=np.ndarray()):
            return builder.close_layer(source, np.float32(scale), zero_point, dtype)
        case Real():
            same = (source.integers.dtype, source.zero_point, source.scale) == (dtype, zero_point, np.float32(scale))
            if not same:
                raise here.unsupported("supported after a dense layer, or with the scale and zero point of its input")
            low, high = quantized_limits(source.low, source.high, np.float32(scale), zero_point, dtype)
            if np.isfinite([source.low, source.high]).any():
                builder.clamp_layer(here.name, here.node.op_type, low, high)
            return source.integers
    raise here.unsupported("supported on the float32 input and after a dense layer between quantized tensors")


def _dequantize_linear(here: Visit) -> Value:
    source = here.input(0)
    match source:
        case Constant():
            return _dequantized_constant(here, source.array)
        case Integers():
            scale = here.scale(1, "the scale")
            return Real(source, np.float32(scale), here.zero_point(2, "the zero point", source.dtype))
        case Sums(scale=None):
            if here.zero_point(2, "the zero point", "int32") != 0:
                raise here.unsupported("the zero point of int32 sums must be 0")
            scale = per_column(here.name, "the scale", here.scale(1, "the scale", scalar=False), source.shape[-1])
            return RealSums(source, scale)
    raise here.unsupported("supported on constants, int8, uint8 and the int32 sums of MatMulInteger")


def _dequantized_constant(here: Visit, integers: NDArray[np.generic]) -> RealConstant:
    if integers.dtype not in (np.int8, np.uint8, np.int32):
        raise here.unsupported(f"constants must be int8, uint8 or int32, not {integers.dtype}")
    scale = here.scale(1, "the scale", scalar=False)
    zero_point = np.zeros((), np.int32)
    if here.input(2) is not None:
        zero_point = here.constant(2, "the zero point").astype(np.int32)
    axis = int(here.attributes.get("axis", 1))
    if here.attributes.get("block_size") or scale.ndim > 1:
        raise here.unsupported("block-wise scales are not supported; per tensor and per channel are")
    if scale.size > 1:
        if not -integers.ndim <= axis < integers.ndim or integers.shape[axis] != scale.size:
            raise ModelError(f"node {here.name!r}: {scale.size} scales do not fit axis {axis} of {integers.shape}")
        axis %= integers.ndim
    return RealConstant(integers, scale, zero_point, axis)


def _weights(here: Visit, index: int, transposed: bool) -> RealConstant:
    """Quantized constant weights as (K, N), their scale along N."""
    value = here.input(index)
    if not isinstance(value, RealConstant) or value.integers.dtype == np.int32:
        raise here.unsupported("the weights must be an int8 or uint8 constant through DequantizeLinear")
    if transposed:
        value = shapes.transposed(value)
    if value.scale.size > 1 and value.axis != value.integers.ndim - 1:
        raise here.unsupported("scales of the weights must be per tensor or per output column")
    return value


def _product(here: Visit, transposed: bool) -> Sums:
    source = here.input(0)
    if not isinstance(source, Real) or np.isfinite([source.low, source.high]).any():
        raise here.unsupported("the first input must be int8 or uint8 through DequantizeLinear")
    weights = _weights(here, 1, transposed)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.asarray(source.scale * weights.scale, np.float32)
    check_scale(here.name, "input scale × weight scale", scale)
    return here.builder.start_sums(
        here.name, source.integers, source.zero_point, weights.integers, weights.zero_point, scale
    )


def _matmul(here: Visit) -> Value:
    return _product(here, transposed=False)


def _gemm(here: Visit) -> Value:
    attributes = here.attributes
    if attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0 or attributes.get("transA", 0):
        raise here.unsupported("alpha and beta must be 1, transA 0")
    sums = _product(here, transposed=bool(attributes.get("transB", 0)))
    if len(sums.shape) != 1:
        raise ModelError(f"node {here.name!r}: Gemm's input must be a matrix, not {1 + len(sums.shape)}-dimensional")
    bias = here.input(2)
    return sums if bias is None else _with_bias(here, sums, bias)


def _with_bias(here: Visit, sums: Sums, value: Value) -> Sums:
    """Sums with a constant added; a real number becomes the nearest multiple of what a sum of 1 means."""
    outputs = sums.shape[-1]
    if not isinstance(value, (Constant, RealConstant)) or value.array.size not in (1, outputs):
        raise here.unsupported(f"supported: a constant of 1 or {outputs} values added to the sums of a dense layer")
    if sums.scale is None:
        if value.array.dtype != np.int32:
            raise here.unsupported(f"what is added to int32 sums must be int32, not {value.array.dtype}")
        bias = value.array.astype(np.int64)
    elif isinstance(value, RealConstant) and _is_bias_scale(value, sums.scale):
        bias = value.integers.astype(np.int64)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            bias = np.rint(value.array.reshape(-1).astype(np.float64) / sums.scale.astype(np.float64))
    total = sums.bias + np.broadcast_to(bias.reshape(-1), (outputs,))
    if not np.all(np.abs(total) < 2**31):
        raise ModelError(f"node {here.name!r}: the bias does not fit int32 in units of input scale × weight scale")
    return dataclasses.replace(sums, bias=total.astype(np.int32))


def _is_bias_scale(bias: RealConstant, scale: NDArray[np.float32]) -> bool:
    """Whether the bias already counts in units of the sums, whose scale every quantizer rounds its own way."""
    return (
        bias.integers.dtype == np.int32
        and not bias.zero_point.any()
        and bias.scale.size in (1, scale.size)
        and bool(np.allclose(bias.scale.reshape(-1), scale.reshape(-1), rtol=1e-5, atol=0))
    )


def _add(here: Visit) -> Value:
    first, second = here.input(0), here.input(1)
    sums, other = (first, second) if isinstance(first, Sums) else (second, first)
    if not isinstance(sums, Sums) or np.isfinite([sums.low, sums.high]).any():
        raise here.unsupported("supported: a constant bias added to the sums of a dense layer")
    return _with_bias(here, sums, other)


def _relu(here: Visit) -> Value:
    return _limited(here, 0.0, np.inf)


def _clip(here: Visit) -> Value:
    limits = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        value = here.input(index)
        if value is None:
            limits.append(float(here.attributes.get(name, default)))
        elif isinstance(value, (Constant, RealConstant)) and value.array.size == 1:
            limits.append(float(value.array.reshape(())))
        else:
            raise here.unsupported(f"{name} must be a constant scalar")
    return _limited(here, *limits)


def _limited(here: Visit, low: float, high: float) -> Value:
    source = here.input(0)
    match source:
        case Integers():
            limits = np.iinfo(source.dtype)
            low, high = (int(min(max(limit, limits.min), limits.max)) for limit in (low, high))
            here.builder.clamp_layer(here.name, here.node.op_type, low, high)
            return source
        case Real() | Sums(scale=np.ndarray()):
            bounds = (min(max(limit, low), high) for limit in (source.low, source.high))
            return dataclasses.replace(source, **dict(zip(("low", "high"), bounds, strict=True)))
    raise here.unsupported("supported after a dense layer between quantized tensors")


def _integer_weights(here: Visit, index: int) -> NDArray[np.generic]:
    weights = here.constant(index, "the weights")
    if weights.dtype not in (np.int8, np.uint8):
        raise here.unsupported(f"the weights must be int8 or uint8, not {weights.dtype}")
    return weights


def _qlinear_matmul(here: Visit) -> Value:
    source = here.input(0)
    if not isinstance(source, Integers):
        raise here.unsupported("the first input must be an int8 or uint8 tensor of the chain")
    weights = _integer_weights(here, 3)
    with np.errstate(over="ignore", under="ignore"):
        scale = np.asarray(here.scale(1, "a_scale") * here.scale(4, "b_scale", scalar=False), np.float32)
    check_scale(here.name, "a_scale × b_scale", scale)
    zero_point = here.zero_point(2, "a_zero_point", source.dtype)
    sums = here.builder.start_sums(
        here.name, source, zero_point, weights, here.constant(5, "b_zero_point").astype(np.int32), scale
    )
    output = here.scalar(7, "y_zero_point")
    if output.dtype not in (np.int8, np.uint8):
        raise here.unsupported(f"the output must be int8 or uint8, not {output.dtype}")
    return here.builder.close_layer(sums, np.float32(here.scale(6, "y_scale")), int(output), output.dtype.name)


def _matmul_integer(here: Visit) -> Value:
    source = here.input(0)
    if not isinstance(source, Integers):
        raise here.unsupported("the first input must be an int8 or uint8 tensor of the chain")
    weights = _integer_weights(here, 1)
    zero_point = here.zero_point(2, "a_zero_point", source.dtype)
    weight_zero_point = np.zeros((), np.int32)
    if here.input(3) is not None:
        weight_zero_point = here.constant(3, "b_zero_point").astype(np.int32)
    return here.builder.start_sums(here.name, source, zero_point, weights, weight_zero_point, None)


def _cast(here: Visit) -> Value:
    from onnx import TensorProto

    source = here.input(0)
    if not isinstance(source, Sums) or source.scale is not None or here.attributes["to"] != TensorProto.FLOAT:
        raise here.unsupported("supported: the int32 sums of MatMulInteger to float32")
    return RealSums(source, np.ones((), np.float32))


def _mul(here: Visit) -> Value:
    first, second = here.input(0), here.input(1)
    sums, other = (first, second) if isinstance(first, RealSums) else (second, first)
    if not isinstance(sums, RealSums) or not isinstance(other, Constant) or np.any(sums.scale != 1):
        raise here.unsupported("supported: one constant scale after MatMulInteger and Cast")
    return RealSums(sums.sums, per_column(here.name, "the factor", other.array, sums.shape[-1]))


def _reshaped(here: Visit) -> Value:
    source = here.input(0)
    if isinstance(source, RealConstant):
        return shapes.reshaped_constant(here.node, here.name, here.builder.opset, source, here.inputs[1:])
    shape = shapes.activation_shape(here.node, here.name, here.builder, source.shape, here.inputs[1:])
    match source:
        case FloatInput() | Integers() | Sums():
            return dataclasses.replace(source, shape=shape)
        case Real():
            return dataclasses.replace(source, integers=dataclasses.replace(source.integers, shape=shape))
    raise here.unsupported("supported on constants and between quantized layers")


def _identity(here: Visit) -> Value:
    return here.input(0)


def _transpose(here: Visit) -> Value:
    source = here.input(0)
    if isinstance(source, RealConstant) and source.integers.ndim == 2:
        if list(here.attributes.get("perm", (1, 0))) == [1, 0]:
            return shapes.transposed(source)
        return source
    raise here.unsupported("supported on constants")


def _constant(here: Visit) -> Value:
    raise here.unsupported("a constant has no inputs")


OPERATORS: dict[str, Callable[[Visit], Value]] = {
    "Add": _add,
    "Cast": _cast,
    "Clip": _clip,
    "Constant": _constant,
    "DequantizeLinear": _dequantize_linear,
    "Flatten": _reshaped,
    "Gemm": _gemm,
    "Identity": _identity,
    "MatMul": _matmul,
    "MatMulInteger": _matmul_integer,
    "Mul": _mul,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize_linear,
    "Relu": _relu,
    "Reshape": _reshaped,
    "Transpose": _transpose,
}
"""Operators by name. On constants alone each of them is folded when the model is compiled."""
