"""Operators on constants."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.operators.values import Constant, RealConstant, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["fold", "reshaped_constant", "transposed"]


def fold(node: onnx.NodeProto, name: str, opset: int, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of a node whose inputs are all known, by ONNX's reference evaluator.

    Raises
    ------
    ModelError
        The inputs do not fit the operator.
    """
    from onnx import NodeProto, helper
    from onnx.reference import ReferenceEvaluator

    # Under names of their own, because a node may use one tensor twice.
    numbers = iter(range(len(inputs)))
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [f"input {next(numbers)}" if item else "" for item in node.input]
    names = [item for item in copy.input if item]
    outputs = [item for item in node.output if item]
    ports = [[helper.make_tensor_value_info(item, 0, None) for item in items] for items in (names, outputs)]
    model = helper.make_model(helper.make_graph([copy], "fold", *ports), opset_imports=[helper.make_opsetid("", opset)])
    try:
        results = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
        return [np.asarray(result) for result in results]
    except Exception as error:  # the evaluator raises whatever numpy raises
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"node {name!r} ({node.op_type}) cannot be computed from its constants: {reason}") from None


def transposed(value: RealConstant) -> RealConstant:
    """The transpose of a matrix; its scales follow their axis."""
    if value.integers.ndim != 2:
        raise ModelError(f"the weights must be a matrix, not of shape {value.integers.shape}")
    return dataclasses.replace(value, integers=value.integers.T, axis=1 - value.axis)


def reshaped_constant(
    node: onnx.NodeProto, name: str, opset: int, value: RealConstant, others: Sequence[Value | None]
) -> RealConstant | tuple[RealConstant, ...]:
    """A dequantized constant in another shape, or in several parts.

    Raises
    ------
    UnsupportedOperatorError
        It has scales along an axis.
    """
    if value.scale.size > 1:
        raise UnsupportedOperatorError(name, node.op_type, "constants with per-channel scales cannot be reshaped")
    arrays = [item.array for item in others if isinstance(item, Constant)]
    parts = fold(node, name, opset, [value.integers, *arrays])
    results = tuple(dataclasses.replace(value, integers=integers) for integers in parts)
    return results if len(results) > 1 else results[0]
