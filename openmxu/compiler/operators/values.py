"""What a tensor of the graph can be while the importer walks over it. Shapes are without the batch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import UnsupportedOperatorError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Convolution, Operation
from openmxu.compiler.ir.window import Window
from openmxu.segments.array_spec import ArraySpec

if TYPE_CHECKING:
    import onnx

__all__ = [
    "Arranged",
    "Constant",
    "FloatInput",
    "HostArray",
    "Integers",
    "Moved",
    "Quantized",
    "Real",
    "RealConstant",
    "RealSums",
    "Refused",
    "Sums",
    "Value",
    "WideReal",
]


@dataclass(frozen=True)
class Constant:
    """An array known when the model is compiled."""

    array: NDArray[Any]


@dataclass(frozen=True)
class RealConstant:
    """A constant through DequantizeLinear; ``scale`` and ``zero_point`` are scalars or along ``axis``."""

    integers: NDArray[np.integer]
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int

    @property
    def array(self) -> NDArray[np.float64]:
        """The real values."""
        shape = [1] * self.integers.ndim
        if self.scale.size > 1:
            shape[self.axis] = -1
        zero_point = self.zero_point.reshape(shape if self.zero_point.size > 1 else [1] * len(shape))
        scale = self.scale.reshape(shape) if self.scale.size > 1 else self.scale.reshape([1] * len(shape))
        return (self.integers.astype(np.int64) - zero_point) * scale.astype(np.float64)


@dataclass(frozen=True)
class FloatInput:
    """The float32 input ``name`` of the graph, given in ``given_shape`` and seen in ``shape``."""

    name: str
    given_shape: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class HostArray:
    """What only the host can work on: numbers of other types, or with no dimension beside the batch."""

    spec: ArraySpec

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one batch element."""
        return self.spec.shape


@dataclass(frozen=True)
class Refused:
    """A constant that nothing on the device can use; ``error`` says why."""

    error: UnsupportedOperatorError


@dataclass(frozen=True)
class Integers:
    """int8, uint8 or int16 values of the network's ``tensor``, in the shape in which the graph sees them here."""

    tensor: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def is_signed(self) -> bool:
        """Whether the type is not uint8."""
        return self.dtype != "uint8"

    @property
    def is_wide(self) -> bool:
        """Whether the type is int16."""
        return self.dtype == "int16"


@dataclass(frozen=True)
class WideReal:
    """int16 values of tensor ``tensor`` of the network times ``scale``: states of recurrent cells."""

    tensor: str
    shape: tuple[int, ...]
    scale: np.float32


@dataclass(frozen=True)
class Real:
    """What DequantizeLinear makes of ``integers``, and then ``nodes`` one value at a time.

    ``precise`` is a tensor that holds the same in int16, and the scale of it, for those who can use it.
    """

    integers: Integers
    scale: np.float32
    zero_point: int
    nodes: tuple[onnx.NodeProto, ...] = ()
    precise: tuple[str, np.float32] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the integers."""
        return self.integers.shape


@dataclass(frozen=True)
class Moved:
    """Elements of tensors in an order in which they do not lie anywhere yet.

    Attributes
    ----------
    parts
        Where they come from: all of them integers of one type, or all of them real.
    index : int64 array of the shape in which the graph sees them
        For each element its number, -1 for ``fill``. The elements of a part are numbered in the order in which the
        graph sees the part; those of one part follow those of the one before it.
    name
        Of the node that moved them last.
    """

    parts: tuple[Integers, ...] | tuple[Real, ...]
    index: NDArray[np.int64]
    fill: float
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """As the graph sees them."""
        return self.index.shape

    @property
    def dtype(self) -> str:
        """Of the integers."""
        part = self.parts[0]
        return part.dtype if isinstance(part, Integers) else "float32"

    @property
    def is_wide(self) -> bool:
        """Whether the integers are int16."""
        return self.dtype == "int16"


@dataclass(frozen=True)
class Quantized:
    """Integers, and what they mean: (integer - zero point) · scale."""

    value: Integers | Moved
    scale: np.float32
    zero_point: int

    def real(self) -> Real | Moved:
        """What DequantizeLinear makes of them."""
        if isinstance(self.value, Integers):
            return Real(self.value, self.scale, self.zero_point)
        parts = tuple(Real(part, self.scale, self.zero_point) for part in self.value.parts)
        fill = np.float32(self.value.fill - self.zero_point) * self.scale
        return dataclasses.replace(self.value, parts=parts, fill=float(fill))

    @classmethod
    def of(cls, value: Value | None) -> Quantized | None:
        """The integers of a real value, ``None`` where there are none, or not all mean the same."""
        match value:
            case Real(nodes=()):
                return cls(value.integers, value.scale, value.zero_point)
            case Moved() if all(isinstance(part, Real) and not part.nodes for part in value.parts):
                first = value.parts[0]
                if len({(part.integers.dtype, part.scale, part.zero_point) for part in value.parts}) > 1:
                    return None
                integers = tuple(part.integers for part in value.parts)
                limits = np.iinfo(first.integers.dtype)
                with np.errstate(over="ignore"):
                    fill = np.rint(np.float32(value.fill) / first.scale) + first.zero_point
                moved = cls(dataclasses.replace(value, parts=integers, fill=fill), first.scale, first.zero_point)
                is_exact = limits.min <= fill <= limits.max and moved.real().fill == value.fill
                return moved if is_exact else None
        return None


@dataclass(frozen=True)
class Sums:
    """Results of an operation that wait for their scale: QuantizeLinear, or the graph's output.

    Attributes
    ----------
    operation
        Without target and result.
    tensor, channels_first
        What it makes, and how the graph sees it.
    scales
        What a sum of 1 means as a real number: scalar, or one for each channel. Two for the sum of two tensors, which
        have a scale each; none where the sums themselves are meant.
    low, high
        Limits of the real number.
    pooling
        Windows of which the maximum is taken, one after the other.
    is_difference
        The second of two tensors holds the negative of what is subtracted.
    is_rounded
        A sum is the real number but for a part of the step of what it was made from, so that it must be quantized.
    """

    shape: tuple[int, ...]
    operation: Operation
    tensor: Tensor
    channels_first: bool
    scales: tuple[NDArray[np.float32], ...]
    low: float = -np.inf
    high: float = np.inf
    pooling: tuple[Window, ...] = ()
    is_difference: bool = False
    is_rounded: bool = False

    @property
    def is_from_array(self) -> bool:
        """Whether the sums are those of the array, to which a bias can be added."""
        return isinstance(self.operation, Convolution)

    @property
    def is_limited(self) -> bool:
        """Whether more than a scale comes behind the sums."""
        return bool(np.isfinite([self.low, self.high]).any() or self.pooling)


@dataclass(frozen=True)
class RealSums:
    """int32 ``sums`` that the graph itself turns into float32 and multiplies by ``scale``, scalar or (N,)."""

    sums: Sums
    scale: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the sums."""
        return self.sums.shape


@dataclass(frozen=True)
class Arranged:
    """A value that the graph sees with its dimensions in another order, the batch not in front.

    Attributes
    ----------
    order
        For each dimension in the graph the number of the dimension of (batch, *value.shape).
    """

    value: FloatInput | Integers | Real | WideReal
    order: tuple[int, ...]


Value = (
    Constant
    | RealConstant
    | FloatInput
    | HostArray
    | Integers
    | Real
    | WideReal
    | Moved
    | Sums
    | RealSums
    | Refused
    | Arranged
)
