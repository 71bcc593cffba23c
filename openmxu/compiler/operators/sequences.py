"""Tensors whose batch is not the first dimension: what recurrent operators of ONNX take and make.

ONNX puts time or directions before the batch unless a node says otherwise, so models turn tensors with Transpose in
front of recurrent nodes and behind them. Nothing moves on the device: rows lie as they lie, and the compiler remembers
how the graph sees them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.elements import UNARY_FUNCTIONS
from openmxu.compiler.operators.values import (
    Arranged,
    Constant,
    FloatInput,
    Integers,
    Real,
    RealConstant,
    Value,
    WideReal,
)

if TYPE_CHECKING:
    import onnx

__all__ = [
    "arrange",
    "arranged",
    "batch_axes",
    "last_step",
    "moves_batch",
    "plain",
    "reshaped",
    "transpose",
    "unarranged",
]

_QUANTIZING = ("DequantizeLinear", "Identity", "QuantizeLinear")
_ROW_WISE = (*_QUANTIZING, *UNARY_FUNCTIONS, "Add", "Clip", "MatMul", "Mul", "Relu")
"""Operators that work on one row after the other where their other inputs are constants."""

_RECURRENT = ("GRU", "LSTM", "RNN")


def arranged(value: Value, order: tuple[int, ...]) -> Value:
    """A value as the graph sees it: itself where that is the usual order."""
    return value if order == tuple(range(len(order))) else Arranged(value, order)


def plain(value: Value) -> Value:
    """A value without regard to the order of its dimensions."""
    return value.value if isinstance(value, Arranged) else value


def unarranged(value: Value) -> tuple[Value, tuple[int, ...]]:
    """A value with the batch in front, and the order of its dimensions in the graph."""
    if isinstance(value, Arranged):
        return value.value, value.order
    return value, tuple(range(len(value.shape) + 1))


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    """The same rows seen in another shape."""
    if isinstance(value, Real):
        return dataclasses.replace(value, integers=dataclasses.replace(value.integers, shape=shape))
    return dataclasses.replace(value, shape=shape)


def arrange(here: Visit, operator: Callable[[Visit], Value]) -> Value:
    """What an operator makes of an input whose batch is not in front."""
    source = here.input(0)
    name = here.node.op_type
    if name in _RECURRENT:
        return operator(here)
    if name == "Transpose":
        return transpose(here)
    if not isinstance(source, Arranged):
        raise here.unsupported("the batch must be the first dimension of its inputs")
    if name in _ROW_WISE and _keeps_rows(here, source):
        inner = dataclasses.replace(here, inputs=[source.value, *here.inputs[1:]])
        return arranged(operator(inner), source.order)
    match name:
        case "Squeeze" | "Unsqueeze":
            return _squeezed(here, source)
        case "Gather":
            return last_step(here)
    raise here.unsupported(f"the batch must be the first dimension of its input, not number {source.order.index(0)}")


def _keeps_rows(here: Visit, source: Arranged) -> bool:
    """Whether constants meet all rows alike: a matrix that rows are multiplied by, else at most one number for each
    column."""
    limit = 2 if here.node.op_type == "MatMul" else 1
    others = [value for value in here.inputs[1:] if value is not None]
    are_alike = all(isinstance(value, (Constant, RealConstant)) and value.array.ndim <= limit for value in others)
    return are_alike and source.order[-1] == len(source.order) - 1


def moves_batch(here: Visit) -> bool:
    """Whether a node is a Transpose that puts the batch elsewhere."""
    if here.node.op_type != "Transpose" or not isinstance(here.input(0), (FloatInput, Integers, Real, WideReal)):
        return False
    return _permutation(here)[0] != 0


def _permutation(here: Visit) -> list[int]:
    rank = len(here.input(0).order) if isinstance(here.input(0), Arranged) else len(here.input(0).shape) + 1
    permutation = list(here.attributes.get("perm", range(rank)[::-1]))
    if sorted(permutation) != list(range(rank)):
        raise ModelError(f"node {here.name!r} (Transpose): perm {permutation} does not fit {rank} dimensions")
    return permutation


def transpose(here: Visit) -> Value:
    """Transpose where the batch moves, and nothing else changes its order."""
    value, order = unarranged(here.input(0))
    order = tuple(order[axis] for axis in _permutation(here))
    if [axis for axis in order if axis] != list(range(1, len(order))):
        raise here.unsupported("beside the batch, no dimensions may change their order")
    return arranged(value, order)


def _squeezed(here: Visit, source: Arranged) -> Value:
    """Squeeze and Unsqueeze of dimensions other than the batch."""
    value, order = source.value, source.order
    rank = len(order)
    if here.input(1) is not None:
        axes = [int(axis) for axis in here.constant(1, "axes").reshape(-1)]
    elif "axes" in here.attributes:
        axes = list(here.attributes["axes"])
    else:
        axes = [index for index, axis in enumerate(order) if axis and value.shape[axis - 1] == 1]
    if here.node.op_type == "Unsqueeze":
        rank += len(axes)
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"node {here.name!r} ({here.node.op_type}): axes {axes} do not fit {rank} dimensions")
    chosen = {axis % rank for axis in axes}
    # Dimensions in the order of the graph: numbers of those of the value, None for a new one.
    if here.node.op_type == "Unsqueeze":
        rest = iter(order)
        kept: list[int | None] = [None if index in chosen else next(rest) for index in range(rank)]
    else:
        if any(order[index] == 0 or value.shape[order[index] - 1] != 1 for index in chosen):
            raise here.unsupported("only dimensions of 1 beside the batch can be removed")
        kept = [axis for index, axis in enumerate(order) if index not in chosen]
    shape = tuple(1 if axis is None else value.shape[axis - 1] for axis in kept if axis != 0)
    numbers = iter(range(1, len(kept)))
    return arranged(reshaped(value, shape), tuple(0 if axis == 0 else next(numbers) for axis in kept))


def last_step(here: Visit) -> Value:
    """Gather of the last step of what a recurrent node makes: its final state."""
    if not isinstance(here.input(0), (Arranged, Integers, Real)):
        raise here.unsupported("supported: the last step of a sequence that a recurrent node makes")
    value, order = unarranged(here.input(0))
    integers = value.integers if isinstance(value, Real) else value
    last = here.builder.last_steps.get(integers.tensor) if isinstance(integers, Integers) else None
    axis = int(here.attributes.get("axis", 0)) % len(order)
    index = here.constant(1, "the index")
    length = value.shape[0] if value.shape else 0
    if last is None or order[axis] != 1 or index.size != 1 or int(index.reshape(())) not in (-1, length - 1):
        raise here.unsupported("supported: the last step of a sequence that a recurrent node makes")
    shape = (*(1 for _ in range(index.ndim)), *value.shape[1:])
    if index.ndim > 1:
        raise here.unsupported("the index must be one number")
    if isinstance(value, Integers):
        last = last.integers
    # A step has one dimension less, or one of 1 in the place of time.
    rest = [item for item in order if item != 1 or index.ndim]
    numbers = iter(range(1, len(rest)))
    return arranged(reshaped(last, shape), tuple(0 if item == 0 else next(numbers) for item in rest))


def batch_axes(nodes: Sequence[onnx.NodeProto]) -> dict[str, int]:
    """The dimension of the batch of those inputs of a graph that recurrent nodes want with time or directions first."""
    makers = {name: node for node in nodes for name in node.output if name}
    axes = {}
    for node in nodes:
        layout = next((item.i for item in node.attribute if item.name == "layout"), 0)
        if node.op_type not in _RECURRENT or layout:
            continue
        for index in (0, 5, 6):
            name = node.input[index] if index < len(node.input) else ""
            while name in makers and makers[name].op_type in _QUANTIZING:
                name = makers[name].input[0]
            if name and name not in makers:
                axes[name] = 1
    return axes
