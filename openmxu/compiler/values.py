"""What a tensor of the graph can be while the importer walks over it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Constant", "FloatInput", "Integers", "Real", "RealConstant", "RealSums", "Sums", "Value"]


@dataclass(frozen=True)
class Constant:
    """An array known when the model is compiled."""

    array: NDArray[np.generic]


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
    """The graph's float32 input; ``shape`` is without the batch here and below."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class Integers:
    """int8 or uint8 values: the network's input, or what its last layer so far makes."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Real:
    """What DequantizeLinear makes of ``integers``, limited to ``low`` … ``high``."""

    integers: Integers
    scale: np.float32
    zero_point: int
    low: float = -np.inf
    high: float = np.inf

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the integers."""
        return self.integers.shape


@dataclass(frozen=True)
class Sums:
    """int32 sums that wait for the end of their layer: QuantizeLinear, or the graph's output.

    Attributes
    ----------
    node
        Name of the multiplication.
    weights, bias
        As in a layer.
    scale
        What a sum of 1 means as a real number, scalar or (N,); ``None`` where the sums themselves are meant.
    low, high
        Limits of the real number.
    """

    shape: tuple[int, ...]
    node: str
    input_signed: bool
    input_zero_point: int
    weights: NDArray[np.int16]
    bias: NDArray[np.int32]
    scale: NDArray[np.float32] | None
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True)
class RealSums:
    """int32 ``sums`` that the graph itself turns into float32 and multiplies by ``scale``, scalar or (N,)."""

    sums: Sums
    scale: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the sums."""
        return self.sums.shape


Value = Constant | RealConstant | FloatInput | Integers | Real | Sums | RealSums
