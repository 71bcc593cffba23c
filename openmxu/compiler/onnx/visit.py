"""One node of the graph while it is translated: its inputs, checked for what an operator needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.operators.builder import Builder, check_scale, normal
from openmxu.compiler.operators.values import Constant, Integers, Moved, Quantized, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["Visit"]


@dataclasses.dataclass(frozen=True)
class Visit:
    """One node: its builder, attributes, and the values of its inputs (``None`` where an optional one is absent)."""

    builder: Builder
    node: onnx.NodeProto
    name: str
    attributes: dict[str, Any]
    inputs: list[Value | None]

    @property
    def output(self) -> str:
        """Name of what the node makes."""
        return self.node.output[0]

    def input(self, index: int) -> Value | None:
        """Input number ``index``, ``None`` where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def integers(self, index: int) -> Integers | Moved:
        """An input that is an int8 or uint8 tensor of the network."""
        value = self.input(index)
        if isinstance(value, Integers) or (isinstance(value, Moved) and isinstance(value.parts[0], Integers)):
            return self.bytes_of(value)
        raise self.unsupported(f"input {index} must be an int8 or uint8 tensor that is no constant")

    def quantized(self, index: int, *, wide: bool = False) -> Quantized:
        """An input that is real, and the integers that it stands for: bytes, or also int16 if they may be ``wide``."""
        quantized = Quantized.of(self.input(index))
        if quantized is None:
            types = "int8, uint8 or int16" if wide else "int8 or uint8"
            raise self.unsupported(f"input {index} must be {types} through DequantizeLinear")
        if not wide:
            self.bytes_of(quantized.value)
        return quantized

    def bytes_of(self, value: Integers | Moved) -> Integers | Moved:
        """The integers themselves, if they are bytes."""
        if value.is_wide:
            raise self.unsupported(
                "int16 tensors are supported by Conv, Gemm and MatMul with constant weights, maxima, Relu, Clip, sums "
                "and products of two tensors, and operators that move elements; quantize to int8 or uint8 before it"
            )
        return value

    def constant(self, index: int, what: str) -> NDArray[Any]:
        """The array of a constant input."""
        value = self.input(index)
        if not isinstance(value, Constant):
            raise self.unsupported(f"{what} must be a constant")
        return value.array

    def scalar(self, index: int, what: str) -> NDArray[Any]:
        """The only value of a constant input, as a 0-dimensional array."""
        array = self.constant(index, what)
        if array.size != 1:
            raise self.unsupported(f"{what} must be one number for the whole tensor, not {array.size}")
        return array.reshape(())

    def scale(self, index: int, what: str, scalar: bool = True) -> NDArray[np.float32]:
        """A constant float32 scale; of several ones, those of weights, some may be too small to matter."""
        array = self.scalar(index, what) if scalar else self.constant(index, what)
        if array.dtype != np.float32:
            raise self.unsupported(f"{what} must be float32, not {array.dtype}")
        array = array if scalar else normal(array)
        check_scale(self.name, what, array)
        return array

    def product_of_scales(self, what: str, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray:
        """A float32 product of scales that is a scale itself."""
        with np.errstate(over="ignore", under="ignore"):
            product = normal(np.asarray(first * second, np.float32))
        check_scale(self.name, what, product)
        return product

    def zero_point(self, index: int, what: str, dtype: str) -> int:
        """A constant zero point of the given type; 0 where the input is absent."""
        if self.input(index) is None:
            return 0
        array = self.scalar(index, what)
        if array.dtype.name != dtype:
            raise ModelError(f"node {self.name!r}: {what} must be {dtype} like its tensor, not {array.dtype}")
        return int(array)

    def output_zero_point(self, index: int, what: str, default: str) -> tuple[int, str]:
        """The zero point of the output and the output's type, which it decides; ``default`` where it is absent."""
        if self.input(index) is None:
            return 0, default
        array = self.scalar(index, what)
        if array.dtype not in (np.int8, np.uint8):
            raise self.unsupported(f"the output must be int8 or uint8, not {array.dtype}")
        return int(array), array.dtype.name

    def unsupported(self, reason: str) -> UnsupportedOperatorError:
        """The error that says why this node is not translated."""
        return UnsupportedOperatorError(self.name, self.node.op_type, reason)
