"""Conversion of the user's arrays to planes in host memory, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.segments.array_spec import ArraySpec

__all__ = ["HostTensor", "Packing", "dequantize", "quantize"]


def quantize(values: NDArray[np.float32], scale: np.float32, zero_point: int, dtype: str) -> NDArray[np.integer]:
    """QuantizeLinear as ONNX Runtime computes it: float32 division, round half to even, saturate; NaN to minimum."""
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.asarray(values, np.float32) / np.float32(scale)
    bounded = np.fmin(np.fmax(scaled, np.float32(limits.min - zero_point)), np.float32(limits.max - zero_point))
    return (np.rint(bounded).astype(np.int32) + zero_point).astype(dtype)


def dequantize(values: NDArray[np.integer], scale: NDArray[np.float32], zero_point: int) -> NDArray[np.float32]:
    """DequantizeLinear as ONNX Runtime computes it: (value - zero point) as float32, times the scale in float32."""
    return (values.astype(np.int32) - np.int32(zero_point)).astype(np.float32) * np.asarray(scale, np.float32)


@dataclass(frozen=True)
class Packing:
    """Neighbouring pixels side by side in the lanes of a row, for convolutions of images with few channels.

    A row of host memory and of the unified buffer has S bytes, however few channels a pixel has. Where several pixels
    fit, element (y, x) of the packed plane holds the ``rows`` × ``columns`` pixels from image position (y ·
    ``stride_y`` + ``origin_y``, x · ``stride_x`` + ``origin_x``) on, ``dilation_y`` and ``dilation_x`` apart, row by
    row, each with all its channels. A convolution then has fewer kernel positions by that factor, without more
    transfers than before: that is why the host does the packing rather than the hardware.

    Attributes
    ----------
    image_height, image_width
        Size of the image that the user gives.
    height, width
        Size of the packed plane.
    fill
        Value of pixels outside the image: the integer that stands for zero.
    """

    image_height: int
    image_width: int
    height: int
    width: int
    rows: int
    columns: int
    dilation_y: int
    dilation_x: int
    stride_y: int
    stride_x: int
    origin_y: int
    origin_x: int
    fill: int

    def pack(self, images: NDArray[np.integer]) -> NDArray[np.integer]:
        """Images of shape (batch, image height, image width, channels) to (batch, height, width, lanes)."""
        row, row_is_inside = _neighbours(
            self.height, self.stride_y, self.origin_y, self.rows, self.dilation_y, self.image_height
        )
        column, column_is_inside = _neighbours(
            self.width, self.stride_x, self.origin_x, self.columns, self.dilation_x, self.image_width
        )
        pixels = images[:, row[:, np.newaxis, :, np.newaxis], column[np.newaxis, :, np.newaxis, :]]
        inside = row_is_inside[:, np.newaxis, :, np.newaxis] & column_is_inside[np.newaxis, :, np.newaxis, :]
        filled = np.where(inside[..., np.newaxis], pixels, np.asarray(self.fill, images.dtype))
        return filled.reshape(len(images), self.height, self.width, -1)


def _neighbours(
    count: int, stride: int, origin: int, neighbours: int, dilation: int, length: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Image positions along one axis, (count, neighbours), and a mask of those that lie inside."""
    positions = np.arange(count)[:, np.newaxis] * stride + origin + np.arange(neighbours) * dilation
    return np.clip(positions, 0, length - 1), (positions >= 0) & (positions < length)


@dataclass(frozen=True)
class HostTensor:
    """A program's input or output: the user's array, and its place and layout in host memory.

    In host memory a matrix of R rows and C columns is ⌈C/S⌉ planes of R rows of S bytes; of int16 values every row is
    two rows and of int32 values four, one for each byte, the lowest one first. The rows of images are their pixels.

    Attributes
    ----------
    name, dtype
        Name and type of the model's tensor; ``dtype`` is numpy's name.
    shape
        Shape of one batch element.
    columns
        Values of one matrix row; channels of a pixel.
    stored
        numpy's name of the integers in host memory: uint8, int8, int16 or int32.
    scale, zero_point
        Quantization by the host, with one scale or one for each column; ``scale`` is ``None`` if the host does not
        quantize.
    offset
        Byte address in host memory.
    channels_first
        The columns are the first dimension of ``shape``, as the channels of an image are in ONNX, rather than the last.
    packing
        How the pixels of an input image share rows; ``None`` if each pixel has its own row.
    batch_axis
        Batch dimension of the user's array; everywhere else the batch comes first.
    fill
        What an input's lanes without a column hold.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    columns: int
    stored: str
    scale: tuple[float, ...] | None = None
    zero_point: int = 0
    offset: int = 0
    channels_first: bool = False
    packing: Packing | None = None
    batch_axis: int = 0
    fill: int = 0

    @property
    def spec(self) -> ArraySpec:
        """The user's array."""
        return ArraySpec(self.name, self.dtype, self.shape, self.batch_axis)

    @property
    def positions(self) -> int:
        """Matrix rows of one batch element, or its pixels."""
        return math.prod(self.shape) // self.columns

    @property
    def lanes(self) -> int:
        """Values in one row of host memory: the columns of all pixels that are packed into it."""
        return self.columns * (1 if self.packing is None else self.packing.rows * self.packing.columns)

    def rows(self, batch: int) -> int:
        """Rows of each plane in host memory for ``batch`` elements, counted in values rather than bytes."""
        return batch * (self.positions if self.packing is None else self.packing.height * self.packing.width)

    def extent(self, batch: int, size: int) -> int:
        """Bytes in host memory."""
        return -(-self.lanes // size) * size * self.rows(batch) * np.dtype(self.stored).itemsize

    def place(self, batch: int, size: int) -> slice:
        """Its bytes in host memory for ``batch`` elements."""
        return slice(self.offset, self.offset + self.extent(batch, size))

    def to_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of shape (batch, *shape) as (batch, positions, columns), not packed."""
        batch = len(values)
        if self.channels_first:
            return values.reshape(batch, self.columns, self.positions).transpose(0, 2, 1)
        return values.reshape(batch, self.positions, self.columns)

    def from_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Undo :meth:`to_rows`."""
        batch = len(rows)
        if self.channels_first:
            rows = rows.transpose(0, 2, 1)
        return np.ascontiguousarray(rows).reshape(batch, *self.shape)

    def to_integers(self, values: NDArray[Any]) -> NDArray[np.integer]:
        """The integers that an input of shape (batch, *shape) is stored as."""
        return (
            values if self.scale is None else quantize(values, np.float32(self.scale[0]), self.zero_point, self.stored)
        )

    def from_integers(self, values: NDArray[np.integer]) -> NDArray[Any]:
        """The output for stored integers of shape (batch, *shape), dequantized if the host does that."""
        if self.scale is None:
            return values.astype(self.stored)
        return self.from_rows(dequantize(self.to_rows(values), np.asarray(self.scale, np.float32), self.zero_point))

    def store(self, values: NDArray[Any], memory: NDArray[np.uint8], size: int) -> None:
        """Write an input of shape (batch, *shape) to host memory."""
        batch = len(values)
        pixels = self.to_rows(self.to_integers(values))
        if self.packing is not None:
            packing = self.packing
            pixels = packing.pack(pixels.reshape(batch, packing.image_height, packing.image_width, self.columns))
        rows, planes = self.rows(batch), -(-self.lanes // size)
        stored = np.dtype(self.stored).newbyteorder("<")
        padded = np.full((rows, planes * size), self.fill, stored)
        padded[:, : self.lanes] = pixels.reshape(rows, self.lanes)
        target = memory[self.place(batch, size)].reshape(planes, rows, stored.itemsize, size)
        target[:] = padded.view(np.uint8).reshape(rows, planes, size, stored.itemsize).transpose(1, 0, 3, 2)

    def load(self, memory: NDArray[np.uint8], batch: int, size: int) -> NDArray[Any]:
        """Read an output of shape (batch, *shape) from host memory."""
        rows, planes = self.rows(batch), -(-self.columns // size)
        item = np.dtype(self.stored).itemsize
        source = memory[self.place(batch, size)].reshape(planes, rows, item, size)
        packed = np.ascontiguousarray(source.transpose(1, 0, 3, 2)).reshape(rows, planes * size * item)
        values = packed.view(np.dtype(self.stored).newbyteorder("<")).astype(self.stored)[:, : self.columns]
        return self.from_integers(self.from_rows(values.reshape(batch, self.positions, self.columns)))
