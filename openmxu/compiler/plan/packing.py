"""Images with few channels: neighbouring pixels packed into the lanes of a row.

See :class:`openmxu.segments.host_tensor.Packing` for what the host writes, and why the host does it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.window import Window
from openmxu.segments.host_tensor import Packing

__all__ = ["pack_inputs"]


def pack_inputs(network: Network, size: int) -> Network:
    """Pack every input that only one convolution reads, where that makes kernel positions fewer."""
    for index, operation in enumerate(network.operations):
        if isinstance(operation, Convolution) and operation.groups == 1:
            network = _packed(network, index, operation, size)
    return network


def _packed(network: Network, index: int, operation: Convolution, size: int) -> Network:
    name = operation.sources[0]
    ports = [number for number, port in enumerate(network.inputs) if port.tensor == name]
    if len(ports) != 1 or network.uses(name) != 1:
        return network
    tensor = network.tensors[name]
    choices = sorted(_choices(operation, tensor, size), key=lambda choice: choice[0])
    if not choices or choices[0][0][0] >= operation.window.height * operation.window.width:
        return network
    _, packing, window = choices[0]
    lanes = tensor.channels * packing.rows * packing.columns
    port = network.inputs[ports[0]]
    inputs = list(network.inputs)
    inputs[ports[0]] = dataclasses.replace(port, host=dataclasses.replace(port.host, packing=packing))
    operations = list(network.operations)
    operations[index] = dataclasses.replace(
        operation, weights=_packed_weights(operation.weights, packing, window), window=window
    )
    packed = dataclasses.replace(tensor, height=packing.height, width=packing.width, channels=lanes)
    return dataclasses.replace(
        network, inputs=tuple(inputs), operations=tuple(operations), tensors={**network.tensors, name: packed}
    )


def _choices(
    operation: Convolution, tensor: Tensor, size: int
) -> Iterator[tuple[tuple[int, int, int], Packing, Window]]:
    """Ways to pack, with kernel positions, rows of the packed plane and lanes: what should be small, in this order."""
    window = operation.window
    height, width = window.outputs(tensor.height, tensor.width)
    for rows in range(1, window.height + 1):
        for columns in range(1, window.width + 1):
            lanes = tensor.channels * rows * columns
            if lanes > size:
                break
            y = _axis(height, window.height, window.stride_y, window.dilation_y, window.top, rows)
            x = _axis(width, window.width, window.stride_x, window.dilation_x, window.left, columns)
            packing = Packing(
                image_height=tensor.height,
                image_width=tensor.width,
                height=y.length,
                width=x.length,
                rows=rows,
                columns=columns,
                dilation_y=window.dilation_y,
                dilation_x=window.dilation_x,
                stride_y=y.spacing,
                stride_x=x.spacing,
                origin_y=-window.top,
                origin_x=-window.left,
                fill=operation.zero_point,
            )
            inner = Window(y.kernel, x.kernel, y.stride, x.stride, y.dilation, x.dilation)
            yield (y.kernel * x.kernel, y.length * x.length, lanes), packing, inner


@dataclasses.dataclass(frozen=True)
class _Axis:
    """One dimension of a packed plane: its length, the distance of its elements in pixels, and the window over it."""

    length: int
    spacing: int
    kernel: int
    stride: int
    dilation: int


def _axis(outputs: int, kernel: int, stride: int, dilation: int, padding: int, packed: int) -> _Axis:
    """Pack ``packed`` of ``kernel`` positions into one element.

    Where all of them fit, there is an element for each output; otherwise one for each pixel where a part of a window
    can begin.
    """
    parts = -(-kernel // packed)
    if parts == 1:
        return _Axis(outputs, stride, 1, 1, 1)
    step = packed * dilation
    return _Axis((outputs - 1) * stride + (parts - 1) * step + 1, 1, parts, stride, step)


def _packed_weights(weights: NDArray[np.int16], packing: Packing, window: Window) -> NDArray[np.int16]:
    """Weights (outputs, inputs, height, width) as (outputs, lanes, parts in y, parts in x), zero behind the kernel."""
    outputs, inputs, height, width = weights.shape
    padded = np.zeros((outputs, inputs, window.height * packing.rows, window.width * packing.columns), np.int16)
    padded[:, :, :height, :width] = weights
    split = padded.reshape(outputs, inputs, window.height, packing.rows, window.width, packing.columns)
    lanes = packing.rows * packing.columns * inputs
    return np.ascontiguousarray(split.transpose(0, 3, 5, 1, 2, 4)).reshape(outputs, lanes, window.height, window.width)
