"""One node of the graph while it is translated: its inputs, checked for what an operator needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.builder import Builder, check_scale
from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.values import Constant, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["Visit"]


@dataclasses.dataclass(frozen=True)
class Visit:
    """One node: its builder, attributes, and the values of its inputs (``None`` where an optional one is absent)."""

    builder: Builder
    node: onnx.NodeProto
    name: str
    attributes: dict[str, object]
    inputs: list[Value | None]

    def input(self, index: int) -> Value | None:
        """Input number ``index``, ``None`` where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int, what: str) -> NDArray[np.generic]:
        """The array of a constant input."""
        value = self.input(index)
        if not isinstance(value, Constant):
            raise self.unsupported(f"{what} must be a constant")
        return value.array

    def scalar(self, index: int, what: str) -> NDArray[np.generic]:
        """The only value of a constant input, as a 0-dimensional array."""
        array = self.constant(index, what)
        if array.size != 1:
            raise self.unsupported(f"{what} must be one number for the whole tensor, not {array.size}")
        return array.reshape(())

    def scale(self, index: int, what: str, scalar: bool = True) -> NDArray[np.float32]:
        """A constant float32 scale."""
        array = self.scalar(index, what) if scalar else self.constant(index, what)
        if array.dtype != np.float32:
            raise self.unsupported(f"{what} must be float32, not {array.dtype}")
        check_scale(self.name, what, array)
        return array

    def zero_point(self, index: int, what: str, dtype: str) -> int:
        """A constant zero point of the given type; 0 where the input is absent."""
        if self.input(index) is None:
            return 0
        array = self.scalar(index, what)
        if array.dtype.name != dtype:
            raise ModelError(f"node {self.name!r}: {what} must be {dtype} like its tensor, not {array.dtype}")
        return int(array)

    def unsupported(self, reason: str) -> UnsupportedOperatorError:
        """The error that says why this node is not translated."""
        return UnsupportedOperatorError(self.name, self.node.op_type, reason)
