"""Operators on single values: functions that become tables, limits, sums and products of two tensors."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from openmxu.compiler.builder import per_column
from openmxu.compiler.functions import evaluate_function
from openmxu.compiler.matrix_operators import add_bias, is_per_channel
from openmxu.compiler.operations import Combination
from openmxu.compiler.values import Constant, Integers, Real, RealConstant, RealSums, Sums, Value
from openmxu.compiler.visit import Visit
from openmxu.host_tensor import dequantize, quantize

__all__ = [
    "UNARY_FUNCTIONS",
    "add",
    "clip",
    "multiply",
    "qlinear_add",
    "qlinear_function",
    "qlinear_multiply",
    "relu",
    "tabulate",
    "unary",
]

UNARY_FUNCTIONS = (
    *("Abs", "Ceil", "Celu", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"),
    *("Log", "Mish", "Neg", "Reciprocal", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign"),
    *("Sqrt", "Tanh", "ThresholdedRelu"),
)
"""Operators on one real number that become tables."""


def unary(here: Visit) -> Value:
    """A function of one real number."""
    source = here.input(0)
    if not isinstance(source, Real):
        raise here.unsupported("supported on int8 and uint8 through DequantizeLinear, up to QuantizeLinear")
    if any(not isinstance(value, Constant) or value.array.size != 1 for value in here.inputs[1:] if value is not None):
        raise here.unsupported("its other inputs must be constants of one value")
    return dataclasses.replace(source, nodes=(*source.nodes, here.node))


def relu(here: Visit) -> Value:
    """Relu of integers, real numbers or sums."""
    return _limited(here, 0.0, np.inf)


def clip(here: Visit) -> Value:
    """Clip of integers, real numbers or sums."""
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
            values = np.arange(256, dtype=np.uint8).view(source.dtype)
            limits = np.iinfo(source.dtype)
            bounds = (int(min(max(limit, limits.min), limits.max)) for limit in (low, high))
            table = np.minimum(np.maximum(values, next(bounds)), next(bounds)).astype(source.dtype)
            return here.builder.add_lookup(here.name, source, here.output, table)
        case Sums() if source.scales:
            low, high = (min(max(limit, low), high) for limit in (source.low, source.high))
            return dataclasses.replace(source, low=low, high=high)
        case Real():
            return unary(here)
    raise here.unsupported("supported between quantized tensors")


def tabulate(here: Visit, source: Real, scale: np.float32, zero_point: int, dtype: str) -> Integers:
    """QuantizeLinear of a function of one tensor: a table, or nothing where bytes stay what they are."""
    integers = source.integers
    values = np.arange(256, dtype=np.uint8).view(integers.dtype)
    real = dequantize(values, source.scale, source.zero_point)
    if source.nodes:
        real = evaluate_function(source.nodes, real, here.builder)
    table = quantize(real, scale, zero_point, dtype)
    return here.builder.add_lookup(here.name, integers, here.output, table)


def qlinear_function(here: Visit) -> Value:
    """com.microsoft.QLinearSigmoid and QLinearLeakyRelu."""
    source = here.integers(0)
    scale = np.float32(here.scale(1, "X_scale"))
    zero_point = here.zero_point(2, "X_zero_point", source.dtype)
    output, dtype = here.output_zero_point(4, "Y_zero_point", source.dtype)
    attributes = {name: value for name, value in here.attributes.items() if name == "alpha"}
    node = helper.make_node(here.node.op_type.removeprefix("QLinear"), [here.node.input[0]], ["function"], **attributes)
    real = Real(source, scale, zero_point, (node,))
    return tabulate(here, real, np.float32(here.scale(3, "Y_scale")), output, dtype)


def add(here: Visit) -> Value:
    """Add: a bias behind the array, a number, or another tensor."""
    first, second = here.input(0), here.input(1)
    sums, other = (first, second) if isinstance(first, Sums) else (second, first)
    if isinstance(sums, Sums):
        if sums.is_limited or not sums.is_from_array:
            raise here.unsupported("supported: a constant bias added to the sums of a layer")
        return add_bias(here, sums, other)
    return _binary(here, multiplies=False)


def multiply(here: Visit) -> Value:
    """Mul: the scale of int32 sums, a number, or another tensor."""
    first, second = here.input(0), here.input(1)
    sums, other = (first, second) if isinstance(first, RealSums) else (second, first)
    if isinstance(sums, RealSums):
        if not isinstance(other, Constant) or np.any(sums.scale != 1):
            raise here.unsupported("supported: one constant scale after MatMulInteger or ConvInteger and Cast")
        channels = sums.sums.tensor.channels
        if other.array.size > 1 and not is_per_channel(other.array, sums.sums):
            raise here.unsupported(f"the factor must be one number or {channels}, one for each channel")
        return RealSums(sums.sums, per_column(here.name, "the factor", other.array, channels))
    return _binary(here, multiplies=True)


def qlinear_add(here: Visit) -> Value:
    """com.microsoft.QLinearAdd."""
    return _qlinear_binary(here, multiplies=False)


def qlinear_multiply(here: Visit) -> Value:
    """com.microsoft.QLinearMul."""
    return _qlinear_binary(here, multiplies=True)


@dataclasses.dataclass(frozen=True)
class _Operand:
    """One side of a sum or product."""

    value: Integers | NDArray[np.integer]
    scale: np.float32
    zero_point: int


def _binary(here: Visit, multiplies: bool) -> Value:
    values = [here.input(0), here.input(1)]
    reals = [value for value in values if isinstance(value, Real)]
    if not reals:
        raise here.unsupported("supported on int8 and uint8 tensors through DequantizeLinear")
    numbers = [value for value in values if isinstance(value, Constant) and value.array.size == 1]
    if len(reals) == 1 and numbers:
        return dataclasses.replace(reals[0], nodes=(*reals[0].nodes, here.node))
    if any(real.nodes for real in reals):
        if len(reals) == 2 and _same_source(*reals):
            nodes = {node.output[0]: node for real in reals for node in real.nodes}
            return dataclasses.replace(reals[0], nodes=(*nodes.values(), here.node))
        raise here.unsupported("functions of its inputs must be quantized first")
    return _combination(here, [_operand(here, value) for value in values], multiplies)


def _same_source(first: Real, second: Real) -> bool:
    return (first.integers, first.scale, first.zero_point) == (second.integers, second.scale, second.zero_point)


def _operand(here: Visit, value: Value | None) -> _Operand:
    match value:
        case Real():
            return _Operand(value.integers, value.scale, value.zero_point)
        case RealConstant() if value.scale.size == 1 and value.zero_point.size == 1:
            if value.integers.dtype != np.int32:
                return _Operand(value.integers, np.float32(value.scale.reshape(())), int(value.zero_point.reshape(())))
    raise here.unsupported("its inputs must be int8 or uint8, with one scale each, through DequantizeLinear")


def _qlinear_binary(here: Visit, multiplies: bool) -> Value:
    operands = []
    for first, name in ((0, "A"), (3, "B")):
        value = here.input(first)
        if isinstance(value, Constant):
            value = value.array
            if value.dtype not in (np.int8, np.uint8):
                raise here.unsupported(f"{name} must be int8 or uint8, not {value.dtype}")
            dtype = value.dtype.name
        else:
            value = here.integers(first)
            dtype = value.dtype
        scale = np.float32(here.scale(first + 1, f"{name}_scale"))
        operands.append(_Operand(value, scale, here.zero_point(first + 2, f"{name}_zero_point", dtype)))
    sums = _combination(here, operands, multiplies)
    output, dtype = here.output_zero_point(7, "C_zero_point", "int8" if sums.operation.input_signed[0] else "uint8")
    return here.builder.close(sums, here.output, np.float32(here.scale(6, "C_scale")), output, dtype)


def _combination(here: Visit, operands: list[_Operand], multiplies: bool) -> Sums:
    """The sum or product of two tensors, or of one and a constant."""
    builder = here.builder
    if not isinstance(operands[0].value, Integers):
        operands = operands[::-1]
    first, second = operands
    shape = first.value.shape
    _fix_layout(here, [operand.value for operand in operands if isinstance(operand.value, Integers)])
    name, tensor = first.value.tensor, builder.tensors[first.value.tensor]
    if isinstance(second.value, Integers):
        other = builder.tensors[second.value.tensor]
        same = builder.channels_first[name] == builder.channels_first[second.value.tensor]
        planes = [(item.height, item.width, item.channels) for item in (tensor, other)]
        if second.value.shape != shape or planes[0] != planes[1] or not same:
            raise here.unsupported(
                f"its inputs must have the same shape, not {shape} and {second.value.shape}; constants are broadcast"
            )
        source, signed = second.value.tensor, second.value.dtype == "int8"
    else:
        source, signed = f"{here.output} constant", second.value.dtype == np.int8
        builder.constant(source, _broadcast(here, second.value, shape), like=name)
    if multiplies:
        scales = (here.product_of_scales("the product of scales", first.scale, second.scale),)
    else:
        scales = (np.asarray(first.scale), np.asarray(second.scale))
    operation = Combination(
        name=here.name,
        sources=(name, source),
        target="",
        result=None,
        multiplies=multiplies,
        input_signed=(first.value.dtype == "int8", signed),
        zero_points=(first.zero_point, second.zero_point),
    )
    return Sums(shape, operation, dataclasses.replace(tensor, item=1), builder.channels_first[name], scales)


def _fix_layout(here: Visit, values: list[Integers]) -> None:
    """Decide what the columns of inputs are: as in the other operand, or the channels of an image."""
    builder = here.builder
    known = [value for value in values if not builder.is_open(value)]
    for value in values:
        if builder.is_open(value):
            as_image = builder.channels_first[known[0].tensor] if known else len(value.shape) == 3
            if as_image and len(value.shape) in (2, 3):
                builder.as_image(value)
            else:
                builder.as_matrix(value)


def _broadcast(here: Visit, array: NDArray[np.integer], shape: tuple[int, ...]) -> NDArray[np.integer]:
    """A constant in the shape of a tensor; it may have a batch of 1."""
    if array.ndim == len(shape) + 1 and array.shape[0] == 1:
        array = array[0]
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise here.unsupported(f"a constant of shape {array.shape} does not fit {shape}") from None
