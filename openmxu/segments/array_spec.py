"""What is known of an array before there is one: name, type and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["WHOLE", "ArraySpec"]

WHOLE = -1
"""The batch axis of an array without a batch."""


@dataclass(frozen=True)
class ArraySpec:
    """An array exchanged with a program: its name, numpy's name of its type, and the shape of one batch element.

    ``batch_axis`` is the batch dimension of the whole array: 0, except in recurrent networks whose first dimension is
    time or direction. It is :data:`WHOLE` of an array without a batch, of which ``shape`` is the only one.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    batch_axis: int = 0

    def __str__(self) -> str:
        dimensions = [*map(str, self.shape)]
        if not self.is_whole:
            dimensions.insert(self.batch_axis, "batch")
        return f"{self.dtype} of shape ({', '.join(dimensions)})"

    @property
    def is_whole(self) -> bool:
        """Whether there is no batch."""
        return self.batch_axis == WHOLE

    def full_shape(self, batch: int) -> tuple[int, ...]:
        """The shape of the array of so many batch elements."""
        if self.is_whole:
            return self.shape
        return (*self.shape[: self.batch_axis], batch, *self.shape[self.batch_axis :])

    def whole(self, batch: int) -> ArraySpec:
        """The array of so many batch elements as one without a batch."""
        return ArraySpec(self.name, self.dtype, self.full_shape(batch), WHOLE)

    def with_batch(self, axis: int) -> ArraySpec:
        """An array without a batch as one whose dimension ``axis`` is a batch."""
        return ArraySpec(self.name, self.dtype, (*self.shape[:axis], *self.shape[axis + 1 :]), axis)

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether an array has this type, and this shape for some batch."""
        if array.dtype != self.dtype:
            return False
        if self.is_whole or array.ndim != len(self.shape) + 1:
            return self.is_whole and array.shape == self.shape
        return array.shape[: self.batch_axis] + array.shape[self.batch_axis + 1 :] == self.shape
