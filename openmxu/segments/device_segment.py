"""The parts of a program that the device computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.segments.host_tensor import HostTensor

__all__ = ["DeviceSegment"]


@dataclass(frozen=True)
class DeviceSegment:
    """Some of a program's instructions, which run without a break.

    Attributes
    ----------
    inputs, outputs
        The arrays that it reads and writes, with their places in host memory.
    start, stop
        Its instructions among those of the program; the last one is Halt.
    layers
        Its layers among those of the program: the first one, and the one behind the last.
    constants
        Place of its constants in host memory: first byte, and number of bytes.
    """

    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    start: int
    stop: int
    layers: tuple[int, int]
    constants: tuple[int, int]

    def store_inputs(
        self, values: Mapping[str, NDArray[Any]], memory: NDArray[np.uint8], batch: int, size: int
    ) -> None:
        """Write its inputs to host memory, padded with zeros to ``batch`` elements."""
        for tensor in self.inputs:
            array = values[tensor.name]
            padded = np.zeros((batch, *tensor.shape), tensor.dtype)
            padded[: len(array)] = array
            tensor.store(padded, memory, size)

    def load_outputs(self, memory: NDArray[np.uint8], batch: int, size: int) -> dict[str, NDArray[Any]]:
        """Its outputs in host memory by name, each of shape (batch, *shape)."""
        return {tensor.name: tensor.load(memory, batch, size) for tensor in self.outputs}
