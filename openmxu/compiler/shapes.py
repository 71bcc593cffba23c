"""Operators on constants, and the shapes of what flows between operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.builder import Builder
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.values import Constant, RealConstant, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["activation_shape", "fold", "reshaped_constant", "transposed"]

_OPEN_BATCH = 97
"""Stands for an open batch while a Reshape is tried out: a prime that no shape of a model holds by chance."""


def fold(node: onnx.NodeProto, name: str, opset: int, inputs: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """The value of a node whose inputs are all known, by ONNX's reference evaluator.

    Raises
    ------
    ModelError
        The inputs do not fit the operator.
    """
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [item for item in node.input if item]
    graph = helper.make_graph(
        [node],
        "fold",
        [helper.make_tensor_value_info(item, 0, None) for item in names],
        [helper.make_tensor_value_info(node.output[0], 0, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        return np.asarray(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))[0])
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
) -> RealConstant:
    """A dequantized constant in another shape.

    Raises
    ------
    UnsupportedOperatorError
        It has scales along an axis.
    """
    if value.scale.size > 1:
        raise UnsupportedOperatorError(name, node.op_type, "constants with per-channel scales cannot be reshaped")
    arrays = [item.array for item in others if isinstance(item, Constant)]
    return dataclasses.replace(value, integers=fold(node, name, opset, [value.integers, *arrays]))


def activation_shape(
    node: onnx.NodeProto, name: str, builder: Builder, shape: tuple[int, ...], others: Sequence[Value | None]
) -> tuple[int, ...]:
    """The shape, without batch, that Reshape, Flatten, Squeeze or Unsqueeze gives a tensor of the network.

    Raises
    ------
    UnsupportedOperatorError
        The batch does not stay in front.
    """
    if not all(isinstance(item, Constant) for item in others):
        raise UnsupportedOperatorError(name, node.op_type, "the new shape must be a constant")
    batch = builder.batch or _OPEN_BATCH
    size = batch * int(np.prod(shape))
    if size > 1 << 28:
        raise UnsupportedOperatorError(name, node.op_type, "the tensor is too large")
    inputs = [np.zeros((batch, *shape), np.uint8), *(item.array for item in others)]
    result = fold(node, name, builder.opset, inputs).shape
    if len(result) < 2 or result[0] != batch:
        raise UnsupportedOperatorError(name, node.op_type, "the batch must stay the first dimension")
    return tuple(result[1:])
