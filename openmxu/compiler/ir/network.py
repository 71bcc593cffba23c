"""What the compiler makes of a model before it thinks about hardware: a graph of operations in integers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.operations import Convolution, Operation
from openmxu.layer import Layer
from openmxu.segments.host_tensor import HostTensor

__all__ = ["Network", "Port", "Tensor", "evaluate"]


@dataclass(frozen=True)
class Tensor:
    """Integers of one batch element: a plane of ``height`` × ``width`` positions for each channel.

    A matrix has a width of 1 and its columns as channels. Elements are bytes; where ``item`` is 2 they are int16, which
    take two unified buffer rows a position, and where it is 4 int32.
    """

    height: int
    width: int
    channels: int
    signed: bool
    item: int = 1

    @property
    def positions(self) -> int:
        """Of each plane."""
        return self.height * self.width

    @property
    def is_wide(self) -> bool:
        """Whether elements are int16."""
        return self.item == 2

    def of_type(self, dtype: str) -> Tensor:
        """The same plane of elements of another type, given by numpy's name: uint8, int8 or int16."""
        return dataclasses.replace(self, signed=dtype != "uint8", item=np.dtype(dtype).itemsize)


@dataclass(frozen=True)
class Port:
    """An input or output: what the host exchanges with its caller, not yet placed in host memory, and its tensor."""

    host: HostTensor
    tensor: str


@dataclass(frozen=True)
class Network:
    """Operations between inputs and outputs.

    Attributes
    ----------
    inputs, outputs
    tensors
        Every tensor by name, inputs and constants included.
    operations
        Each behind those that make its sources.
    constants
        Values of constant tensors, int32 of shape (height, width, channels), the same for every batch element.
    batch
        The model's fixed batch, ``None`` where it is left open.
    is_whole
        Inputs and outputs always have that batch, and other parts of the model do not see it as one.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    tensors: Mapping[str, Tensor]
    operations: tuple[Operation, ...]
    constants: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    batch: int | None = None
    is_whole: bool = False

    def uses(self, name: str) -> int:
        """How often a tensor is read, by operations and as an output."""
        reads = sum(operation.sources.count(name) for operation in self.operations)
        return reads + sum(output.tensor == name for output in self.outputs)

    def sums(self, operation: Convolution) -> int:
        """Positions of one batch element that a convolution sums up, before pooling."""
        source = self.tensors[operation.sources[0]]
        height, width = operation.window.outputs(source.height, source.width)
        return height * width

    def passes(self, operation: Convolution) -> int:
        """How often the rows of a convolution pass the array for each tile: int16 ones as low and as high bytes."""
        return 1 + self.tensors[operation.sources[0]].is_wide

    @property
    def multiply_adds(self) -> int:
        """Useful multiplications for one batch element."""
        return sum(self._multiply_adds(operation) for operation in self.operations)

    def _multiply_adds(self, operation: Operation) -> int:
        source = self.tensors[operation.sources[0]]
        return operation.multiply_adds(source.height, source.width)

    def layers(self, batch: int) -> tuple[Layer, ...]:
        """The operations as layers of a program for ``batch`` elements."""
        return tuple(
            Layer("+".join(dict.fromkeys((item.name, *item.joined))), item.kind, batch * self._multiply_adds(item))
            for item in self.operations
        )


def evaluate(
    network: Network, inputs: NDArray[np.integer] | Mapping[str, NDArray[np.integer]]
) -> NDArray[np.int32] | dict[str, NDArray[np.int32]]:
    """The integers of the outputs for the integers of the inputs; the reference without a device.

    Parameters
    ----------
    inputs
        The only input or every input by name, each of shape (batch, *shape), quantized already.

    Returns
    -------
    The only output, or every output by name, each of shape (batch, *shape), not dequantized.
    """
    given = inputs if isinstance(inputs, Mapping) else {network.inputs[0].host.name: inputs}
    values = {name: array[np.newaxis] for name, array in network.constants.items()}
    for port in network.inputs:
        tensor = network.tensors[port.tensor]
        rows = port.host.to_rows(np.asarray(given[port.host.name]).astype(np.int32))
        values[port.tensor] = rows.reshape(-1, tensor.height, tensor.width, tensor.channels)
    signed = {name: tensor.signed for name, tensor in network.tensors.items()}
    for operation in network.operations:
        values |= operation.compute_all(values, signed)
    results = {}
    for port in network.outputs:
        rows = values[port.tensor].reshape(-1, port.host.positions, port.host.columns)
        results[port.host.name] = port.host.from_rows(rows)
    return results if len(results) > 1 else next(iter(results.values()))
