"""Random shapes and windows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Window", "log_uniform", "random_shape", "random_window"]

AUTOMATIC = ("SAME_UPPER", "SAME_LOWER")

LARGEST_TENSOR = 4000
"""Largest number of elements of a tensor: a few such tensors fit the unified buffer of every configuration."""


@dataclass(frozen=True)
class Window:
    """A window over a plane of one or two dimensions; ``pads`` lists the padding before all dimensions, then after
    them.

    ``automatic`` is ONNX's ``auto_pad``, if ``pads`` are not given.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    automatic: str = ""

    def attributes(self) -> dict[str, object]:
        """ONNX's attributes; those with default values are left out."""
        attributes: dict[str, object] = {"kernel_shape": list(self.kernel)}
        if self.automatic:
            attributes["auto_pad"] = self.automatic
        if max(self.strides) > 1:
            attributes["strides"] = list(self.strides)
        if max(self.dilations) > 1:
            attributes["dilations"] = list(self.dilations)
        if any(self.pads):
            attributes["pads"] = list(self.pads)
        return attributes

    @classmethod
    def same(cls, size: int, dimensions: int) -> Window:
        """``size``, which is odd, in each dimension; keeps the shape of a plane."""
        ones = (1,) * dimensions
        return cls((size,) * dimensions, ones, ones, (size // 2,) * 2 * dimensions)

    def may_round_up(self, plane: tuple[int, ...]) -> bool:
        """Whether with ``ceil_mode`` every window begins before the padding behind ``plane``.

        Otherwise ONNX Runtime infers another shape than its kernels compute.
        """
        if self.automatic:
            return False
        count = len(plane)
        for axis, length in enumerate(plane):
            before, kernel, stride = self.pads[axis], self.kernel[axis], self.strides[axis]
            last = -(-(length + before + self.pads[axis + count] - kernel) // stride)
            if last * stride >= length + before:
                return False
        return True

    def __str__(self) -> str:
        parts = ["×".join(map(str, self.kernel))]
        for name, value in self.attributes().items():
            if name != "kernel_shape":
                parts.append(f"{name} {value if isinstance(value, str) else ' '.join(map(str, value))}")
        return " ".join(parts)


def log_uniform(random: np.random.Generator, largest: int) -> int:
    """A log-uniform random integer from 1 to ``largest``."""
    return int(np.exp(random.uniform(0, math.log(largest + 1))))


def random_shape(random: np.random.Generator, batch: int = 2, smallest: int = 1) -> tuple[int, ...]:
    """Batch × channels × height × width, sometimes × width alone; up to 40 channels, planes up to 20 × 20.

    ``batch`` is the largest batch, ``smallest`` the smallest number of elements.
    """
    while True:
        lengths = (20, 20) if random.random() < 0.9 else (100,)
        shape = (int(random.integers(1, batch + 1)), *(log_uniform(random, largest) for largest in (40, *lengths)))
        if smallest <= math.prod(shape) <= LARGEST_TENSOR:
            return shape


def random_window(
    random: np.random.Generator,
    plane: tuple[int, ...],
    largest: int,
    dilated: bool = False,
    automatic: bool = False,
) -> Window:
    """A window of up to ``largest`` positions in each dimension that fits ``plane`` with its padding at least once.

    If ``automatic``, some windows leave their padding to ONNX.
    """
    count = len(plane)
    while True:
        kernel = tuple(int(value) for value in random.integers(1, largest + 1, count))
        if random.random() < 0.3:
            kernel = (kernel[0],) * count
        strides = tuple(int(value) for value in random.choice([1, 1, 2, 3], count))
        dilations = tuple(int(value) for value in random.choice([1, 1, 1, 2, 3] if dilated else [1], count))
        pads = (0,) * 2 * count
        if random.random() < 0.7:
            # Less than the kernel: no window lies entirely in the padding.
            pads = tuple(int(random.integers(0, length)) for length in (*kernel, *kernel))
        spans = [step * (length - 1) + 1 for length, step in zip(kernel, dilations, strict=True)]
        if all(span <= plane[axis] + pads[axis] + pads[axis + count] for axis, span in enumerate(spans)):
            if automatic and random.random() < 0.3:
                name = str(random.choice(AUTOMATIC if any(pads) else (*AUTOMATIC, "VALID")))
                if name == "VALID":
                    return Window(kernel, strides, dilations, (0,) * 2 * count, name)
                # ONNX Runtime does not support automatic padding for dilated windows; with larger strides it skips rows
                # in front.
                if all(stride <= length + 1 for stride, length in zip(strides, kernel, strict=True)):
                    return Window(kernel, strides, (1,) * count, (0,) * 2 * count, name)
            return Window(kernel, strides, dilations, pads)
