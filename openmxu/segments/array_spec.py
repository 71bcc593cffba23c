"""What is known of an array before there is one: name, type and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["ArraySpec"]


@dataclass(frozen=True)
class ArraySpec:
    """An array exchanged with a program: its name, numpy's name of its type, and the shape of one batch element.

    ``batch_axis`` is the batch dimension of the whole array: 0, except in recurrent networks whose first dimension is
    time or direction.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    batch_axis: int = 0

    def __str__(self) -> str:
        dimensions = [*map(str, self.shape)]
        dimensions.insert(self.batch_axis, "batch")
        return f"{self.dtype} of shape ({', '.join(dimensions)})"

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether an array has this type, and this shape for some batch."""
        if array.ndim != len(self.shape) + 1 or array.dtype != self.dtype:
            return False
        return array.shape[: self.batch_axis] + array.shape[self.batch_axis + 1 :] == self.shape
