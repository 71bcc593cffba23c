"""Arrays of the user to planes in host memory, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["HostTensor", "dequantize", "quantize"]


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
class HostTensor:
    """A program's input or output: what the user gives or gets, and where the device finds or leaves it.

    In host memory a matrix of R rows and C columns is ⌈C/S⌉ planes of R rows of S bytes; of int32 values every row is
    four rows, one for each byte, the lowest one first.

    Attributes
    ----------
    name, dtype
        Of the model's tensor; ``dtype`` is numpy's name.
    shape
        Of one batch element.
    columns
        Values of one matrix row.
    stored
        numpy's name of the integers in host memory: uint8, int8 or int32.
    scale, zero_point
        Quantization that the host does, one scale or one for each column; ``scale`` is ``None`` where it does none.
    offset
        Byte address in host memory.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    columns: int
    stored: str
    scale: tuple[float, ...] | None = None
    zero_point: int = 0
    offset: int = 0

    def rows(self, batch: int) -> int:
        """Matrix rows of ``batch`` elements."""
        return batch * int(np.prod(self.shape, dtype=np.int64)) // self.columns

    def extent(self, batch: int, size: int) -> int:
        """Bytes in host memory."""
        return -(-self.columns // size) * size * self.rows(batch) * np.dtype(self.stored).itemsize

    def store(self, values: NDArray[np.generic], memory: NDArray[np.uint8], size: int) -> None:
        """Write an input of shape (batch, *shape) to host memory; unused lanes become 0."""
        batch = len(values)
        if self.scale is not None:
            values = quantize(values, np.float32(self.scale[0]), self.zero_point, self.stored)
        rows, planes = self.rows(batch), -(-self.columns // size)
        padded = np.zeros((rows, planes * size), np.uint8)
        padded[:, : self.columns] = np.ascontiguousarray(values).view(np.uint8).reshape(rows, self.columns)
        target = memory[self.offset : self.offset + padded.size].reshape(planes, rows, size)
        target[:] = padded.reshape(rows, planes, size).transpose(1, 0, 2)

    def load(self, memory: NDArray[np.uint8], batch: int, size: int) -> NDArray[np.generic]:
        """Read an output of shape (batch, *shape) from host memory."""
        rows, planes = self.rows(batch), -(-self.columns // size)
        item = np.dtype(self.stored).itemsize
        source = memory[self.offset : self.offset + self.extent(batch, size)].reshape(planes, rows, item, size)
        packed = np.ascontiguousarray(source.transpose(1, 0, 3, 2)).reshape(rows, planes * size * item)
        values = packed.view(np.dtype(self.stored).newbyteorder("<")).astype(self.stored)[:, : self.columns]
        if self.scale is not None:
            values = dequantize(values, np.asarray(self.scale, np.float32), self.zero_point)
        return np.ascontiguousarray(values).reshape(batch, *self.shape)
