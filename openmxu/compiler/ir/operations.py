"""The operations of a network in integers, each with its definition in numpy.

Tensors have the shape (batch, height, width, channels) here; a matrix is a tensor of width 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled, requantize
from openmxu.compiler.ir.window import Window

__all__ = [
    "Combination",
    "Convolution",
    "Lookup",
    "Operation",
    "Pooling",
    "Rescaling",
    "Result",
    "byte_table",
    "lookup",
]


_POINT = Window()
_ONE = np.float32(1)


@dataclass(frozen=True)
class Result:
    """What becomes of a sum: scale, zero point, limits, and a table that the byte is looked up in.

    Attributes
    ----------
    scale : float32 array
        Scalar or one for each channel; normal.
    zero_point, minimum, maximum
        In the range of int8, uint8 or int16.
    table : uint8 array, (256,), or None
        Bytes, whatever their sign, by byte.
    """

    scale: NDArray[np.float32]
    zero_point: int
    minimum: int
    maximum: int
    table: NDArray[np.uint8] | None = None

    def apply(self, sums: NDArray[np.int32], signed: bool) -> NDArray[np.int32]:
        """Results of int32 sums, as integers; ``signed`` tells how bytes of a table are read in the end."""
        return self.finish(requantize(sums, self.scale, self.zero_point, self.minimum, self.maximum), signed)

    def finish(self, values: NDArray[np.int32], signed: bool) -> NDArray[np.int32]:
        """Look up values that are scaled and limited."""
        if self.table is None:
            return values
        return typed(self.table[values & 0xFF], signed)


def typed(bytes_: NDArray[np.uint8], signed: bool) -> NDArray[np.int32]:
    """Bytes as the integers that they stand for."""
    return (bytes_.view(np.int8) if signed else bytes_).astype(np.int32)


def byte_table(values: NDArray[np.integer]) -> NDArray[np.uint8]:
    """A table of 256 integers of an 8-bit type, by the byte that is looked up."""
    return (np.asarray(values, np.int32) & 0xFF).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One step of a network.

    Attributes
    ----------
    name
        Of the node it comes from.
    sources, target
        Names of tensors; of several that it makes the first.
    result
        What becomes of sums; ``None`` where the target holds the int32 sums themselves.
    joined
        Names of the nodes that it does as well.
    """

    name: str
    sources: tuple[str, ...]
    target: str
    result: Result | None
    joined: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What it does, in a word."""
        return type(self).__name__.lower()

    @property
    def targets(self) -> tuple[str, ...]:
        """All tensors that it makes."""
        return (self.target,)

    def compute_all(self, values: Mapping[str, NDArray[np.int32]], signed: Mapping[str, bool]) -> dict[str, NDArray]:
        """The integers of all targets for those of all tensors so far; ``signed`` tells how targets are read."""
        return {self.target: self.compute([values[name] for name in self.sources], signed[self.target])}

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        """The integers of the target for those of the sources; ``signed`` is the target's."""
        raise NotImplementedError

    def multiply_adds(self, height: int, width: int) -> int:
        """Useful multiplications of the array for a source of ``height`` × ``width`` positions."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Convolution(Operation):
    """``y = result(sum of (x - zero_point) · weights over the window + bias)``; a matrix product has a window of 1 × 1.

    Attributes
    ----------
    weights : int16 array, (outputs, inputs ÷ groups, kernel height, kernel width)
        Zero points subtracted; from -255 to 255.
    bias : int32 array, (outputs,)
    groups
        Output o reads the inputs of group ⌊o · groups ÷ outputs⌋.
    input_signed, zero_point
        How input bytes are read; int16 inputs have the zero point 0.
    pooling
        A window of which the maximum is taken, before the result; ``None`` for none.
    """

    weights: NDArray[np.int16]
    bias: NDArray[np.int32]
    window: Window = _POINT
    groups: int = 1
    input_signed: bool
    zero_point: int
    pooling: Window | None = None

    @property
    def kind(self) -> str:
        return "product" if self.window.is_point else "convolution"

    @property
    def outputs(self) -> int:
        """Channels of the target."""
        return self.weights.shape[0]

    @property
    def inputs(self) -> int:
        """Channels of the source."""
        return self.weights.shape[1] * self.groups

    def multiply_adds(self, height: int, width: int) -> int:
        out_height, out_width = self.window.outputs(height, width)
        return out_height * out_width * self.weights.size

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        (x,) = inputs
        batch, height, width, _ = x.shape
        window = self.window
        out_height, out_width = window.outputs(height, width)
        # float64 is exact: far fewer than 2**29 products of at most 255 · 2**15.
        operands = (x - self.zero_point).astype(np.float64)
        padded = _padded(operands, window, 0.0)
        groups, per_group = self.groups, self.weights.shape[1]
        kernels = self.weights.reshape(groups, self.outputs // groups, *self.weights.shape[1:]).astype(np.float64)
        sums = np.zeros((groups, batch * out_height * out_width, self.outputs // groups))
        for ky, kx, part in _positions(padded, window, out_height, out_width):
            rows = part.reshape(-1, groups, per_group).transpose(1, 0, 2)
            sums += rows @ kernels[:, :, :, ky, kx].transpose(0, 2, 1)
        total = _wrap(sums.transpose(1, 0, 2)).reshape(batch, out_height, out_width, self.outputs)
        if self.pooling is not None:
            total = _maximum(total, self.pooling)
        total = total + self.bias  # wraps
        return total if self.result is None else self.result.apply(total, signed)


_LARGE_WINDOW = 64
"""Positions of a window that is too large to look for ties."""


@dataclass(frozen=True, kw_only=True)
class Pooling(Operation):
    """The maximum or the average of each window.

    Attributes
    ----------
    maximum
        The maximum, of elements as they are, rather than the average of bytes.
    counts_padding
        An average counts positions outside the plane, as zeros.
    input_signed, zero_point
        How input elements are read.
    input_scale, output_scale
        Of an average, whose ``result.scale`` does not count; a maximum keeps its scale.
    """

    window: Window
    maximum: bool
    counts_padding: bool = False
    input_signed: bool
    zero_point: int = 0
    input_scale: np.float32 = _ONE
    output_scale: np.float32 = _ONE

    def scale(self, count: int) -> np.float32:
        """The factor of a sum of ``count`` positions, in ONNX Runtime's order of operations."""
        with np.errstate(over="ignore", under="ignore"):
            return np.float32(self.input_scale / np.float32(self.output_scale * np.float32(count)))

    @property
    def has_ties(self) -> bool:
        """Whether averages of many sums lie exactly in the middle between two integers, as where no scale changes.

        Other arithmetic in float32 than this may round them the other way.
        """
        count = self.window.height * self.window.width
        if self.maximum or count > _LARGE_WINDOW:
            return False
        averages = np.arange(255 * count + 1) * (float(self.input_scale) / (float(self.output_scale) * count))
        return bool((np.abs(averages % 1 - 0.5) < 1e-9 * (1 + averages)).any())

    def counts(self, height: int, width: int) -> NDArray[np.int64]:
        """Divisors of an average, (output height, output width)."""
        out_height, out_width = self.window.outputs(height, width)
        if self.counts_padding:
            return np.full((out_height, out_width), self.window.height * self.window.width)
        plane = np.ones((1, height, width, 1), np.int64)
        padded = _padded(plane, self.window, 0)
        parts = [part for _, _, part in _positions(padded, self.window, out_height, out_width)]
        return np.sum(parts, axis=0)[0, :, :, 0]

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        (x,) = inputs
        if self.maximum:
            return self.result.apply(_maximum(x, self.window), signed)
        _, height, width, _ = x.shape
        padded = _padded(x - np.int32(self.zero_point), self.window, 0)
        sums = np.sum(
            [part for _, _, part in _positions(padded, self.window, *self.window.outputs(height, width))],
            axis=0,
            dtype=np.int32,
        )
        counts = self.counts(height, width)
        scales = np.array([self.scale(count) for count in counts.reshape(-1)], np.float32).reshape(counts.shape)
        return dataclasses.replace(self.result, scale=scales[:, :, np.newaxis]).apply(sums, signed)


@dataclass(frozen=True, kw_only=True)
class Combination(Operation):
    """The sum or the product of two tensors, element by element.

    Attributes
    ----------
    multiplies
        The product rather than the sum.
    input_signed, zero_points
        How the elements of the two sources are read.
    second_scale
        Factor of the second source in a sum; the first one's, or that of a product, is the result's.
    """

    multiplies: bool
    input_signed: tuple[bool, bool]
    zero_points: tuple[int, int]
    second_scale: np.float32 = _ONE

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        first, second = (x - np.int32(zero_point) for x, zero_point in zip(inputs, self.zero_points, strict=True))
        result = self.result
        if self.multiplies:
            return result.apply(first * second, signed)
        limits = (result.zero_point, result.minimum, result.maximum)
        second = np.broadcast_to(second, first.shape)
        return result.finish(add_scaled(first, result.scale, second, self.second_scale, *limits), signed)


@dataclass(frozen=True, kw_only=True)
class Lookup(Operation):
    """Each byte looked up in the result's table."""

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        (x,) = inputs
        return self.result.finish(x, signed)


@dataclass(frozen=True, kw_only=True)
class Rescaling(Operation):
    """Each element with another scale, where one of the two types is int16: bytes have tables.

    ``input_signed`` and ``zero_point`` tell how elements are read.
    """

    input_signed: bool
    zero_point: int

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        (x,) = inputs
        return self.result.apply(x - np.int32(self.zero_point), signed)


def lookup(name: str, source: str, target: str, table: NDArray[np.uint8]) -> Lookup:
    """A :class:`Lookup`: bytes are read as uint8 and pass unchanged to ``table`` (uint8, 256 entries)."""
    return Lookup(name=name, sources=(source,), target=target, result=Result(np.ones((), np.float32), 0, 0, 255, table))


def _wrap(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Integers in the 32 bits that the accumulators hold."""
    return values.astype(np.int64).astype(np.int32)


def _padded(x: NDArray[Any], window: Window, fill: float) -> NDArray[Any]:
    sides = ((window.top, window.bottom), (window.left, window.right))
    pads = [[max(pad, 0) for pad in side] for side in sides]
    rows, columns = (slice(max(-first, 0), min(last, 0) or None) for first, last in sides)
    return np.pad(x[:, rows, columns], ((0, 0), *pads, (0, 0)), constant_values=fill)


def _positions(
    padded: NDArray[Any], window: Window, height: int, width: int
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """For each position of the window, what all outputs read there."""
    for ky in range(window.height):
        for kx in range(window.width):
            y, x = ky * window.dilation_y, kx * window.dilation_x
            rows = slice(y, y + (height - 1) * window.stride_y + 1, window.stride_y)
            columns = slice(x, x + (width - 1) * window.stride_x + 1, window.stride_x)
            yield ky, kx, padded[:, rows, columns]


def _maximum(x: NDArray[np.int32], window: Window) -> NDArray[np.int32]:
    lowest = -(1 << 31)
    parts = _positions(_padded(x, window, lowest), window, *window.outputs(x.shape[1], x.shape[2]))
    return np.maximum.reduce([part for _, _, part in parts])
