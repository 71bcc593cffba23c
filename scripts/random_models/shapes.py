"""Random shapes and windows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Window", "log_uniform", "random_shape", "random_window"]

LARGEST_TENSOR = 4000
"""Elements of a tensor: a few of them fit the unified buffer of every configuration."""


@dataclass(frozen=True)
class Window:
    """How a kernel walks over a plane; pairs are (vertical, horizontal)."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]

    def attributes(self) -> dict[str, list[int]]:
        """As ONNX names them; left out where they have their default."""
        attributes = {"kernel_shape": list(self.kernel)}
        if self.strides != (1, 1):
            attributes["strides"] = list(self.strides)
        if self.dilations != (1, 1):
            attributes["dilations"] = list(self.dilations)
        if any(self.pads):
            attributes["pads"] = list(self.pads)
        return attributes

    def __str__(self) -> str:
        parts = [f"{self.kernel[0]}×{self.kernel[1]}"]
        for name, value in self.attributes().items():
            if name != "kernel_shape":
                parts.append(f"{name} {' '.join(map(str, value))}")
        return " ".join(parts)


def log_uniform(random: np.random.Generator, largest: int) -> int:
    """From 1 to ``largest``, small numbers as often as large ones."""
    return int(np.exp(random.uniform(0, math.log(largest + 1))))


def random_shape(random: np.random.Generator, batch: int = 2) -> tuple[int, int, int, int]:
    """Batch × channels × height × width; up to 40 channels, planes up to 20 × 20."""
    while True:
        channels, height, width = (log_uniform(random, largest) for largest in (40, 20, 20))
        shape = (int(random.integers(1, batch + 1)), channels, height, width)
        if math.prod(shape) <= LARGEST_TENSOR:
            return shape


def random_window(
    random: np.random.Generator, plane: tuple[int, int], largest: int, dilated: bool = False, padded: bool = True
) -> Window:
    """A window of up to ``largest`` × ``largest`` positions that fits ``plane`` with its padding at least once."""
    while True:
        kernel = tuple(int(value) for value in random.integers(1, largest + 1, 2))
        if random.random() < 0.3:
            kernel = (kernel[0],) * 2
        strides = tuple(int(value) for value in random.choice([1, 1, 2, 3], 2))
        dilations = tuple(int(value) for value in random.choice([1, 1, 1, 2, 3], 2)) if dilated else (1, 1)
        pads = (0, 0, 0, 0)
        if padded and random.random() < 0.7:
            # Less than the kernel: no window lies in the padding alone.
            pads = tuple(int(random.integers(0, length)) for length in (*kernel, *kernel))
        spans = [step * (length - 1) + 1 for length, step in zip(kernel, dilations, strict=True)]
        if all(span <= plane[axis] + pads[axis] + pads[axis + 2] for axis, span in enumerate(spans)):
            return Window(kernel, strides, dilations, pads)
