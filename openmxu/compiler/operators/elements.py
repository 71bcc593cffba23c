"""Operators on single values: functions that become tables, limits, sums and products of two tensors."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from openmxu.compiler.ir.operations import Combination, Rescaling
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.affine import scaled_by_constant
from openmxu.compiler.operators.builder import per_column
from openmxu.compiler.operators.functions import Quantization, evaluate_function, tabulated
from openmxu.compiler.operators.lanes import as_elements, parts_of, settled
from openmxu.compiler.operators.matrix import add_bias, is_per_channel
from openmxu.compiler.operators.values import (
    Constant,
    Integers,
    Moved,
    Quantized,
    Real,
    RealConstant,
    RealSums,
    Sums,
    Value,
)
from openmxu.segments.host_tensor import dequantize, quantize

__all__ = [
    "UNARY_FUNCTIONS",
    "add",
    "arithmetic",
    "clip",
    "divide",
    "is_real",
    "multiply",
    "qlinear_add",
    "qlinear_function",
    "qlinear_multiply",
    "relu",
    "subtract",
    "sum_of_two",
    "tabulate",
    "unary",
]

UNARY_FUNCTIONS = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp"),
    *("Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "PRelu", "Pow", "Reciprocal"),
    *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan"),
    *("Tanh", "ThresholdedRelu", "com.microsoft.FastGelu", "com.microsoft.Gelu", "com.microsoft.QuickGelu"),
)
"""Operators on one real number, and constants, that become tables."""


def unary(here: Visit) -> Value:
    """A function of one real number."""
    source = here.input(0)
    if not is_real(source):
        raise here.unsupported("supported on int8 and uint8 through DequantizeLinear, up to QuantizeLinear")
    if any(not isinstance(value, Constant) or value.array.size != 1 for value in here.inputs[1:] if value is not None):
        raise here.unsupported("its other inputs must be constants of one value")
    _check_bytes(here, source)
    return _applied(here, source, here.node, 0)


def _check_bytes(here: Visit, *arguments: Value | None) -> None:
    """Refuse a function of int16."""
    if any(is_real(argument) and _is_wide(argument) for argument in arguments):
        raise here.unsupported("tables have 256 entries, for bytes: quantize int16 to int8 or uint8 in front of it")


def _is_wide(source: Real | Moved) -> bool:
    """Whether real numbers are those of an int16 tensor."""
    parts = (source,) if isinstance(source, Real) else source.parts
    return any(part.integers.is_wide for part in parts)


def is_real(value: Value | None) -> bool:
    """Whether a value is the real numbers of the network's tensors."""
    return isinstance(value, Real) or (isinstance(value, Moved) and isinstance(value.parts[0], Real))


def _applied(here: Visit, source: Real | Moved, node: onnx.NodeProto, index: int) -> Real | Moved:
    """A function, whose input number ``index`` is the argument, of every element."""
    if isinstance(source, Real):
        return dataclasses.replace(source, nodes=(*source.nodes, node))
    parts = []
    for part in source.parts:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if part.nodes:  # what it was moved from
            copy.input[index] = part.nodes[-1].output[0]
        parts.append(dataclasses.replace(part, nodes=(*part.nodes, copy)))
    fill = evaluate_function([node], np.array([source.fill], np.float32), here.builder)
    return dataclasses.replace(source, parts=tuple(parts), fill=float(fill[0]))


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
    if is_real(source) and _is_wide(source):
        source = _as_sums(here, settled(here, source) if isinstance(source, Moved) else source)
    if is_real(source):
        return unary(here)
    match source:
        case Integers() | Moved():
            here.bytes_of(source)
            values = np.arange(256, dtype=np.uint8).view(source.dtype)
            limits = np.iinfo(source.dtype)
            bounds = [int(min(max(limit, limits.min), limits.max)) for limit in (low, high)]
            table = np.minimum(np.maximum(values, bounds[0]), bounds[1]).astype(source.dtype)
            parts = [_looked_up(here, part, table, number) for number, part in enumerate(parts_of(source))]
            if isinstance(source, Integers):
                return parts[0]
            return dataclasses.replace(source, parts=tuple(parts), fill=min(max(source.fill, bounds[0]), bounds[1]))
        case Sums() if source.scales:
            low, high = (min(max(limit, low), high) for limit in (source.low, source.high))
            return dataclasses.replace(source, low=low, high=high)
    raise here.unsupported("supported between quantized tensors")


def tabulate(here: Visit, source: Real | Moved, scale: np.float32, zero_point: int, dtype: str) -> Integers | Moved:
    """QuantizeLinear of a function of one tensor: a table, or nothing where bytes stay what they are. To int16 and from
    there the scale changes, and nothing else."""
    parts = []
    for number, part in enumerate((source,) if isinstance(source, Real) else source.parts):
        if part.nodes and dtype == "int16":
            raise here.unsupported("tables have entries of one byte: quantize the function to int8 or uint8 first")
        if part.integers.is_wide or dtype == "int16":
            parts.append(_rescaled(here, part, number, Quantization(scale, zero_point, dtype)))
            continue
        if part.nodes:
            source_bytes = Quantization(part.scale, part.zero_point, part.integers.dtype)
            table = tabulated(part.nodes, source_bytes, Quantization(scale, zero_point, dtype), here.builder)
        else:
            values = np.arange(256, dtype=np.uint8).view(part.integers.dtype)
            table = quantize(dequantize(values, part.scale, part.zero_point), scale, zero_point, dtype)
        parts.append(_looked_up(here, part.integers, table, number))
    if isinstance(source, Real):
        return parts[0]
    fill = int(quantize(np.asarray(source.fill, np.float32), scale, zero_point, dtype))
    return dataclasses.replace(source, parts=tuple(parts), fill=fill)


def _rescaled(here: Visit, part: Real, number: int, target: Quantization) -> Integers:
    """Part ``number`` of the node's output, where it or its source is int16."""
    if Quantization(part.scale, part.zero_point, part.integers.dtype) == target:
        return part.integers
    sums, name = _as_sums(here, part), _part_name(here, number)
    return here.builder.close(sums, name, target.scale, target.zero_point, target.dtype)


def _as_sums(here: Visit, source: Value) -> Sums:
    """A tensor as sums that wait for another scale."""
    if not isinstance(source, Real):
        raise here.unsupported("the parts of its input must have one type and one scale")
    value, builder = source.integers, here.builder
    builder.place_open(value)
    operation = Rescaling(
        name=here.name,
        sources=(value.tensor,),
        target="",
        result=None,
        input_signed=value.is_signed,
        zero_point=source.zero_point,
    )
    tensor, channels_first = builder.tensors[value.tensor], builder.channels_first[value.tensor]
    return Sums(value.shape, operation, tensor, channels_first, (np.asarray(source.scale, np.float32),))


def _looked_up(here: Visit, part: Integers, table: NDArray[np.integer], number: int) -> Integers:
    """Part ``number`` of the node's output."""
    return here.builder.add_lookup(here.name, part, _part_name(here, number), table)


def _part_name(here: Visit, number: int) -> str:
    return here.output if number == 0 else f"{here.output} part {number}"


def qlinear_function(here: Visit) -> Value:
    """com.microsoft.QLinearSigmoid and QLinearLeakyRelu."""
    source = here.integers(0)
    scale = np.float32(here.scale(1, "X_scale"))
    zero_point = here.zero_point(2, "X_zero_point", source.dtype)
    output, dtype = here.output_zero_point(4, "Y_zero_point", source.dtype)
    attributes = {name: value for name, value in here.attributes.items() if name == "alpha"}
    node = helper.make_node(here.node.op_type.removeprefix("QLinear"), [here.node.input[0]], ["function"], **attributes)
    real = _applied(here, Quantized(source, scale, zero_point).real(), node, 0)
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


def sum_of_two(here: Visit) -> Value:
    """Sum, which is Add for two inputs."""
    if len(here.inputs) == 1:
        return here.input(0)
    if len(here.inputs) > 2:
        raise here.unsupported(f"supported: the sum of two tensors, not of {len(here.inputs)}")
    node = onnx.NodeProto()
    node.CopyFrom(here.node)
    node.op_type = "Add"
    return add(dataclasses.replace(here, node=node))


def subtract(here: Visit) -> Value:
    """Sub: a number or constants for the channels, or another tensor, which is negated and added."""
    function = _function_of_one(here, list(here.inputs)) or scaled_by_constant(here)
    if function is not None:
        return function
    first, second = (_operand(here, value) for value in here.inputs)
    if not any(is_real(value) for value in here.inputs):
        raise here.unsupported("supported on int8, uint8 and int16 tensors through DequantizeLinear")
    if "int16" in (first.value.dtype, second.value.dtype):
        second = dataclasses.replace(second, scale=-second.scale)
    else:
        second = _negated(here, second)
    sums = _combination(here, [first, second], multiplies=False)
    return dataclasses.replace(sums, is_difference=True)


def divide(here: Visit) -> Value:
    """Div by a number or by constants for the channels, or of a number."""
    function = _function_of_one(here, list(here.inputs)) or scaled_by_constant(here)
    if function is None:
        raise here.unsupported("supported: a tensor by a constant with at most one value for each channel")
    return function


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
    if isinstance(first, Sums) or isinstance(second, Sums):
        scaled = scaled_by_constant(here)
        if scaled is None:
            raise here.unsupported("supported behind a layer: a constant with at most one value for each channel")
        return scaled
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

    value: Integers | Moved | NDArray[np.integer]
    scale: np.float32
    zero_point: int


def _binary(here: Visit, multiplies: bool) -> Value:
    values = [here.input(0), here.input(1)]
    function = _function_of_one(here, values) or scaled_by_constant(here)
    if function is not None:
        return function
    operands = [_operand(here, value) for value in values]
    if any(is_real(value) for value in values):
        return _combination(here, operands, multiplies)
    raise here.unsupported("supported on int8, uint8 and int16 tensors through DequantizeLinear")


def arithmetic(here: Visit) -> Value:
    """Max, Min and others of a tensor and a number, or of one tensor and a function of it."""
    _check_bytes(here, *here.inputs)
    function = _function_of_one(here, list(here.inputs))
    if function is None:
        raise here.unsupported("one of its inputs must be a number, or a function of the same tensor as the other")
    return function


def _function_of_one(here: Visit, values: list[Value | None]) -> Real | Moved | None:
    """The function of a real number that a node is: its inputs are functions of one tensor of bytes, and numbers."""
    reals = [(index, value) for index, value in enumerate(values) if is_real(value)]
    others = [value for value in values if not is_real(value)]
    if not reals or any(_is_wide(value) for _, value in reals):
        return None
    if any(not isinstance(value, (Constant, RealConstant)) or value.array.size != 1 for value in others):
        return None
    if len(reals) == 1:
        return _applied(here, reals[0][1], here.node, reals[0][0])
    first = reals[0][1]
    if not all(isinstance(value, Real) and _same_source(value, first) for _, value in reals):
        return None
    nodes = {node.output[0]: node for _, value in reals for node in value.nodes}
    return dataclasses.replace(first, nodes=(*nodes.values(), here.node)) if nodes else None


def _same_source(first: Real, second: Value) -> bool:
    return isinstance(second, Real) and (first.integers, first.scale, first.zero_point) == (
        second.integers,
        second.scale,
        second.zero_point,
    )


def _operand(here: Visit, value: Value | None) -> _Operand:
    if is_real(value):
        quantized = Quantized.of(value)
        if quantized is None:
            raise here.unsupported("functions of its inputs must be quantized first")
        return _Operand(quantized.value, quantized.scale, quantized.zero_point)
    match value:
        case RealConstant() if value.scale.size == 1 and value.zero_point.size == 1:
            if value.integers.dtype != np.int32:
                return _Operand(value.integers, np.float32(value.scale.reshape(())), int(value.zero_point.reshape(())))
    raise here.unsupported("its inputs must be int8, uint8 or int16, with one scale each, through DequantizeLinear")


def _negated(here: Visit, operand: _Operand) -> _Operand:
    """The operand whose real numbers are the negative ones; -x is as many steps from its zero point as x."""
    value = operand.value
    limits = np.iinfo(value.dtype)
    values = np.arange(256, dtype=np.uint8).view(value.dtype)
    table = (limits.max + limits.min - values.astype(np.int32)).astype(value.dtype)
    zero_point = limits.max + limits.min - operand.zero_point
    if isinstance(value, np.ndarray):
        return dataclasses.replace(operand, value=table[value.view(np.uint8)], zero_point=zero_point)
    name = f"{here.output} negated"
    parts = [
        here.builder.add_lookup(here.name, part, f"{name} {number}", table)
        for number, part in enumerate(parts_of(value))
    ]
    if isinstance(value, Integers):
        return dataclasses.replace(operand, value=parts[0], zero_point=zero_point)
    moved = dataclasses.replace(value, parts=tuple(parts), fill=limits.max + limits.min - value.fill)
    return dataclasses.replace(operand, value=moved, zero_point=zero_point)


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
    if isinstance(operands[0].value, np.ndarray):
        operands = operands[::-1]
    first, second = operands
    if isinstance(second.value, np.ndarray):
        (value,), channels_first = as_elements(here, [first.value])
        name, source, signed = value.tensor, f"{here.output} constant", second.value.dtype != np.uint8
        builder.constant(source, _broadcast(here, second.value, value.shape), name, channels_first)
    else:
        (value, other), channels_first = as_elements(here, _alike(here, [first.value, second.value]))
        name, source, signed = value.tensor, other.tensor, other.is_signed
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
        input_signed=(value.is_signed, signed),
        zero_points=(first.zero_point, second.zero_point),
    )
    return Sums(value.shape, operation, builder.tensors[name], channels_first, scales)


def _alike(here: Visit, values: list[Integers | Moved]) -> list[Integers | Moved]:
    """Two tensors in one shape; elements of the smaller one are repeated."""
    shapes = [value.shape for value in values]
    if shapes[0] == shapes[1]:
        return values
    if len(shapes[0]) != len(shapes[1]):
        raise here.unsupported(
            f"its inputs must have the same number of dimensions, not shapes {shapes[0]}, {shapes[1]}"
        )
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise here.unsupported(f"its inputs' shapes {shapes[0]} and {shapes[1]} do not fit") from None
    return [value if value.shape == shape else _repeated(here, value, shape) for value in values]


def _repeated(here: Visit, value: Integers | Moved, shape: tuple[int, ...]) -> Moved:
    if isinstance(value, Integers):
        value = Moved((value,), np.arange(int(np.prod(value.shape))).reshape(value.shape), 0.0, here.name)
    return dataclasses.replace(value, index=np.ascontiguousarray(np.broadcast_to(value.index, shape)))


def _broadcast(here: Visit, array: NDArray[np.integer], shape: tuple[int, ...]) -> NDArray[np.integer]:
    """A constant in the shape of a tensor; it may have a batch of 1."""
    if array.ndim == len(shape) + 1 and array.shape[0] == 1:
        array = array[0]
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise here.unsupported(f"a constant of shape {array.shape} does not fit {shape}") from None
