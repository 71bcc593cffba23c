"""What the compiler makes of a model before it thinks about hardware: a chain of dense layers in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import requantize
from openmxu.host_tensor import HostTensor

__all__ = ["DenseLayer", "Network", "evaluate"]


@dataclass(frozen=True)
class DenseLayer:
    """``y = requantize(x' @ weights + bias)`` where ``x'`` is the input minus its zero point.

    Attributes
    ----------
    name
        Of the node it comes from.
    weights : int16 array, (K, N)
        Zero points subtracted; from -255 to 255.
    bias : int32 array, (N,)
    scale : float32 array, (N,), or None
        Positive and normal. ``None``: the outputs are the int32 sums.
    input_signed, input_zero_point
        How input bytes are read.
    zero_point, minimum, maximum
        Of the output bytes, in the range of int8 or uint8.
    """

    name: str
    weights: NDArray[np.int16]
    bias: NDArray[np.int32]
    scale: NDArray[np.float32] | None
    input_signed: bool
    input_zero_point: int
    zero_point: int = 0
    minimum: int = 0
    maximum: int = 255

    @property
    def inputs(self) -> int:
        """K, the length of an input row."""
        return self.weights.shape[0]

    @property
    def outputs(self) -> int:
        """N, the length of an output row."""
        return self.weights.shape[1]

    def compute(self, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """Integers out of integers in, ``rows`` of shape (M, K): the layer's definition."""
        sums = (rows.astype(np.int64) - self.input_zero_point) @ self.weights.astype(np.int64) + self.bias
        sums = sums.astype(np.int32)  # wraps, as the accumulators do
        if self.scale is None:
            return sums
        return requantize(sums, self.scale, self.zero_point, self.minimum, self.maximum)


@dataclass(frozen=True)
class Network:
    """A chain of layers between one input and one output.

    Attributes
    ----------
    input, output
        What the host exchanges with its caller; not yet placed in host memory.
    layers
        In order; there is at least one, and only the last one may have no ``scale``.
    batch
        The model's fixed batch, ``None`` where it is left open.
    """

    input: HostTensor
    output: HostTensor
    layers: tuple[DenseLayer, ...]
    batch: int | None = None


def evaluate(network: Network, rows: NDArray[np.integer]) -> NDArray[np.int32]:
    """The integers of the output for the integers of the input, both as matrices; the reference without a device."""
    for layer in network.layers:
        rows = layer.compute(rows)
    return rows
