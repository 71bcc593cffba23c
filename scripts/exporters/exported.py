"""A model that an exporter wrote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exported", "values"]

_COUNT = 40


@dataclass(frozen=True)
class Exported:
    """The bytes of an ONNX file, and values for its only input."""

    name: str
    data: bytes
    values: NDArray[np.float32]


def values(*shape: int) -> NDArray[np.float32]:
    """Some batch elements of a shape."""
    return np.random.default_rng(1).normal(size=(_COUNT, *shape)).astype(np.float32)
