"""Chains of matrix products and nothing else: networks that have a plan of their own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Convolution

__all__ = ["DenseLayer", "dense_layers"]


@dataclass(frozen=True)
class DenseLayer:
    """A matrix product of a chain: the attributes of its :class:`Convolution`, with weights of shape (K, N)."""

    name: str
    weights: NDArray[np.int16]
    bias: NDArray[np.int32]
    scale: NDArray[np.float32] | None
    input_signed: bool
    input_zero_point: int
    zero_point: int = 0
    minimum: int = 0
    maximum: int = 0

    @property
    def outputs(self) -> int:
        """N, the length of an output row."""
        return self.weights.shape[1]


def dense_layers(network: Network) -> tuple[DenseLayer, ...] | None:
    """The layers of a network that is a chain of matrix products and nothing else; ``None`` for any other."""
    if len(network.inputs) != 1 or len(network.outputs) != 1 or not network.operations:
        return None
    tensor = network.inputs[0].tensor
    layers = []
    for operation in network.operations:
        is_product = isinstance(operation, Convolution) and operation.window.is_point and operation.groups == 1
        if not is_product or operation.pooling is not None or operation.sources != (tensor,):
            return None
        if operation.result is not None and operation.result.table is not None:
            return None
        layers.append(_dense_layer(operation))
        tensor = operation.target
    return tuple(layers) if network.outputs[0].tensor == tensor else None


def _dense_layer(operation: Convolution) -> DenseLayer:
    layer = DenseLayer(
        operation.name,
        np.ascontiguousarray(operation.weights[:, :, 0, 0].T),
        operation.bias,
        None,
        operation.input_signed,
        operation.zero_point,
    )
    result = operation.result
    if result is None:
        return layer
    return dataclasses.replace(
        layer, scale=result.scale, zero_point=result.zero_point, minimum=result.minimum, maximum=result.maximum
    )
