"""What each supported ONNX operator means for the network under construction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators import affine, shapes
from openmxu.compiler.operators import elements as element_operators
from openmxu.compiler.operators import matrix as matrix_operators
from openmxu.compiler.operators import planes as plane_operators
from openmxu.compiler.operators import views as moves
from openmxu.compiler.operators.builder import Builder, Input, node_name, per_column
from openmxu.compiler.operators.sequences import arrange, last_step, moves_batch
from openmxu.compiler.operators.values import (
    Arranged,
    Constant,
    FloatInput,
    Integers,
    Moved,
    Quantized,
    Real,
    RealConstant,
    RealSums,
    Sums,
    Value,
)
from openmxu.compiler.recurrent.operators import gru_operator, lstm_operator
from openmxu.segments.bodies import bodies_of

if TYPE_CHECKING:
    import onnx

__all__ = ["OPERATORS", "UNKNOWN_OPERATOR", "operator_name", "visit"]

UNKNOWN_OPERATOR = "the operator is not supported; docs/compiler.md lists those that are"
"""Why a node is refused whose operator is none of those here."""


def operator_name(node: onnx.NodeProto) -> str:
    """A node's operator, with its domain unless that is ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


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
    is_own = operator_name(node) != node.op_type or node.op_type == "DequantizeLinear"
    if is_own or bodies_of(node) or not all(isinstance(value, Constant) for value in given):
        if operator_name(node) not in OPERATORS:
            raise UnsupportedOperatorError(node_name(node), operator_name(node), UNKNOWN_OPERATOR)
        operator = OPERATORS[operator_name(node)]
        is_arranged = any(isinstance(value, Arranged) for value in inputs) or moves_batch(here)
        result = arrange(here, operator) if is_arranged else operator(here)
        results = result if isinstance(result, tuple) else (result,)
    else:
        results = map(Constant, shapes.fold(node, here.name, builder.opset, [value.array for value in given]))
    builder.values |= {name: value for name, value in zip(node.output, results, strict=False) if name}


def _quantize_linear(here: Visit) -> Value:
    from onnx import TensorProto, helper

    source = here.input(0)
    scale = np.float32(here.scale(1, "the scale"))
    zero_point_input = here.input(2)
    chosen = here.attributes.get("output_dtype", 0)
    dtype = helper.tensor_dtype_to_np_dtype(chosen).name if chosen else "uint8"
    if zero_point_input is not None:
        dtype = here.scalar(2, "the zero point").dtype.name
    if dtype not in ("uint8", "int8", "int16"):
        raise here.unsupported(f"the output must be uint8, int8 or int16, not {dtype}")
    if here.attributes.get("precision", 0) not in (0, TensorProto.FLOAT):
        raise here.unsupported("it must divide in float32, as it does without the attribute precision")
    zero_point = _zero_point(here, dtype)
    match source:
        case FloatInput():
            return _quantized_input(here, source, float(scale), zero_point, dtype)
        case Sums() if source.scales:
            if dtype == "int16" and source.is_rounded:
                raise here.unsupported(
                    "behind factors and offsets of a tensor's channels, supported are int8 and uint8"
                )
            return here.builder.close(source, here.output, scale, zero_point, dtype)
        case Real() | Moved() if element_operators.is_real(source):
            return element_operators.tabulate(here, source, scale, zero_point, dtype)
    raise here.unsupported("supported on float32 inputs and between quantized tensors")


def _quantized_input(here: Visit, source: FloatInput, scale: float, zero_point: int, dtype: str) -> Integers:
    """What the host makes of a float32 input: once, however often the graph says so."""
    given = here.builder.inputs
    for tensor, item in given.items():
        if item.name == source.name:
            if (item.stored, item.scale, item.zero_point) != (dtype, scale, zero_point):
                raise here.unsupported("an input can be quantized in one way only")
            return Integers(tensor, source.shape, dtype)
    given[here.output] = Input(source.name, "float32", source.given_shape, dtype, scale, zero_point)
    return Integers(here.output, source.shape, dtype)


def _dequantize_linear(here: Visit) -> Value:
    from onnx import TensorProto

    source = here.input(0)
    if here.attributes.get("output_dtype", 0) not in (0, TensorProto.FLOAT):
        raise here.unsupported("the output must be float32")
    match source:
        case Constant():
            return _dequantized_constant(here, source.array)
        case Integers() | Moved() if not element_operators.is_real(source):
            scale = np.float32(here.scale(1, "the scale"))
            return Quantized(source, scale, _zero_point(here, source.dtype)).real()
        case Sums(scales=()):
            if here.zero_point(2, "the zero point", "int32") != 0:
                raise here.unsupported("the zero point of int32 sums must be 0")
            channels = source.tensor.channels
            scale = per_column(here.name, "the scale", here.scale(1, "the scale", scalar=False), channels)
            return RealSums(source, scale)
    raise here.unsupported(
        "supported on constants, int8, uint8, int16 and the int32 sums of MatMulInteger and ConvInteger"
    )


def _zero_point(here: Visit, dtype: str) -> int:
    """The zero point of QuantizeLinear or DequantizeLinear."""
    zero_point = here.zero_point(2, "the zero point", dtype)
    if dtype == "int16" and zero_point != 0:
        raise here.unsupported(
            f"the zero point of int16 must be 0, not {zero_point}: the array subtracts none from words"
        )
    return zero_point


def _dequantized_constant(here: Visit, integers: NDArray[Any]) -> RealConstant:
    if integers.dtype not in (np.int8, np.uint8, np.int16, np.int32):
        raise here.unsupported(f"constants must be int8, uint8, int16 or int32, not {integers.dtype}")
    scale = here.scale(1, "the scale", scalar=False)
    zero_point = np.zeros((), np.int32)
    if here.input(2) is not None:
        zero_point = here.constant(2, "the zero point").astype(np.int32)
        if integers.dtype == np.int16 and zero_point.any():
            raise here.unsupported("the zero point of int16 must be 0")
    axis = int(here.attributes.get("axis", 1))
    if here.attributes.get("block_size") or scale.ndim > 1:
        raise here.unsupported("block-wise scales are not supported; per tensor and per channel are")
    if scale.size > 1:
        if not -integers.ndim <= axis < integers.ndim or integers.shape[axis] != scale.size:
            raise ModelError(f"node {here.name!r}: {scale.size} scales do not fit axis {axis} of {integers.shape}")
        axis %= integers.ndim
    return RealConstant(integers, scale, zero_point, axis)


def _cast(here: Visit) -> Value:
    from onnx import TensorProto, helper

    source, kind = here.input(0), here.attributes["to"]
    if kind == TensorProto.FLOAT:
        if isinstance(source, Sums) and not source.scales:
            return RealSums(source, np.ones((), np.float32))
        if isinstance(source, (FloatInput, RealConstant, RealSums, Sums)) or element_operators.is_real(source):
            return source
    if isinstance(source, Integers) and kind == helper.np_dtype_to_tensor_dtype(np.dtype(source.dtype)):
        return source
    raise here.unsupported("supported: int32 sums to float32, and types that stay what they are")


def _identity(here: Visit) -> Value:
    return here.input(0)


def _dropout(here: Visit) -> Value:
    training = here.input(2)
    if any(here.node.output[1:]) or (training is not None and here.constant(2, "the mode").any()):
        raise here.unsupported("training is not supported")
    return here.input(0)


def _gather(here: Visit) -> Value:
    """A step of a sequence that a recurrent node makes, or elements in another order."""
    try:
        return last_step(here)
    except UnsupportedOperatorError:
        return moves.move(here)


def _constant(here: Visit) -> Value:
    raise here.unsupported("a constant has no inputs")


_MOVES = (
    *("DepthToSpace", "Expand", "Flatten", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile"),
    *("Transpose", "Unsqueeze"),
)

OPERATORS: dict[str, Callable[[Visit], Value | tuple[Value | None, ...]]] = {
    **dict.fromkeys(element_operators.UNARY_FUNCTIONS, element_operators.unary),
    **dict.fromkeys(("Max", "Min"), element_operators.arithmetic),
    **dict.fromkeys(_MOVES, moves.move),
    "Add": element_operators.add,
    "AveragePool": plane_operators.average_pool,
    "BatchNormalization": affine.batch_normalization,
    "Cast": _cast,
    "Clip": element_operators.clip,
    "Concat": moves.concatenate,
    "Constant": _constant,
    "Conv": matrix_operators.conv,
    "ConvInteger": matrix_operators.conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "Div": element_operators.divide,
    "Dropout": _dropout,
    "Gemm": matrix_operators.gemm,
    "GRU": gru_operator,
    "Gather": _gather,
    "GlobalAveragePool": plane_operators.global_average_pool,
    "GlobalMaxPool": plane_operators.global_max_pool,
    "Identity": _identity,
    "LSTM": lstm_operator,
    "MatMul": matrix_operators.matmul,
    "MatMulInteger": matrix_operators.matmul_integer,
    "MaxPool": plane_operators.max_pool,
    "Mul": element_operators.multiply,
    "Pad": moves.pad,
    "QLinearConv": matrix_operators.qlinear_conv,
    "QLinearMatMul": matrix_operators.qlinear_matmul,
    "QuantizeLinear": _quantize_linear,
    "ReduceMax": plane_operators.reduce_max,
    "ReduceMean": plane_operators.reduce_mean,
    "Relu": element_operators.relu,
    "Resize": moves.resize,
    "Sub": element_operators.subtract,
    "Sum": element_operators.sum_of_two,
    "com.microsoft.DequantizeLinear": _dequantize_linear,
    "com.microsoft.QGemm": matrix_operators.qgemm,
    "com.microsoft.QLinearAdd": element_operators.qlinear_add,
    "com.microsoft.QLinearAveragePool": plane_operators.qlinear_average_pool,
    "com.microsoft.QLinearConcat": moves.qlinear_concatenate,
    "com.microsoft.QLinearGlobalAveragePool": plane_operators.qlinear_global_average_pool,
    "com.microsoft.QLinearLeakyRelu": element_operators.qlinear_function,
    "com.microsoft.QLinearMul": element_operators.qlinear_multiply,
    "com.microsoft.QLinearSigmoid": element_operators.qlinear_function,
    "com.microsoft.QuantizeLinear": _quantize_linear,
}
"""Operators by name. Of ONNX's own, each is folded when the model is compiled where all its inputs are constants."""
