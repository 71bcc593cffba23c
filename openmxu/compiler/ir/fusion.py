"""Operations that one pass of the activation unit does together: pooling after a convolution, limits, tables."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.operations import Convolution, Lookup, Operation, Pooling, Result
from openmxu.compiler.ir.permutation import Permutation
from openmxu.compiler.ir.window import Window
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["fuse"]


def fuse(network: Network, config: Config) -> Network:
    """Join operations with the only one that makes their source, where the integers stay the same.

    - What puts the matrices of a product of two tensors side by side, is where the product writes them.
    - A table goes into the result before it; one that only limits bytes becomes that result's limits.
    - A maximum of requantized sums is the requantized maximum of the sums: scales are positive. Joined where no window
      reaches from one band of rows into another one, or the sums of the whole plane fit the accumulators. Not joined
      where windows overlap and another convolution stands between the two: it takes more passes than there are sums,
      and the activation unit does them while the array works on that convolution.
    """
    operations: list[Operation] = []
    made: dict[str, int] = {}
    for operation in network.operations:
        source = operation.sources[0]
        index = made.get(source)
        joined = None
        if index is not None and len(operation.sources) == 1 and network.uses(source) == 1:
            is_next = not any(isinstance(other, Convolution) for other in operations[index + 1 :])
            if is_next or not _overlaps(operation):
                joined = _joined(operations[index], operation, network, config)
        if joined is None:
            index = len(operations)
            operations.append(operation)
        else:
            operations[index] = joined
        made[operation.target] = index
    kept = {name for operation in operations for name in (*operation.sources, *operation.targets)}
    tensors = {name: tensor for name, tensor in network.tensors.items() if name in kept}
    return dataclasses.replace(network, operations=tuple(operations), tensors=tensors)


def _joined(first: Operation, second: Operation, network: Network, config: Config) -> Operation | None:
    """One operation for two, ``None`` where that is not possible."""
    if first.result is None:
        return None
    source, target = network.tensors[second.sources[0]], network.tensors[second.target]
    common = {"target": second.target, "joined": (*first.joined, second.name, *second.joined)}
    match second:
        case Lookup():
            result = _with_table(first.result, second.result.table, source.signed, target.signed)
            return dataclasses.replace(first, result=result, **common)
        case Pooling(maximum=True) if isinstance(first, Convolution):
            is_plain = first.pooling is None and first.result.table is None
            if is_plain and _pools_in_bands(second.window, source, config):
                return dataclasses.replace(first, pooling=second.window, **common)
        case Permutation() if isinstance(first, TensorProduct):
            rearranged = first.rearranged(second)
            return None if rearranged is None else dataclasses.replace(rearranged, **common)
    return None


def _overlaps(operation: Operation) -> bool:
    """Whether it pools by windows that share positions."""
    if not isinstance(operation, Pooling):
        return False
    window = operation.window
    return window.stride_y < window.height or window.stride_x < window.width


def _with_table(result: Result, table: NDArray[np.uint8], signed: bool, target_signed: bool) -> Result:
    if result.table is not None:
        return dataclasses.replace(result, table=table[result.table])
    limits = _limits(table, result, signed) if signed == target_signed else None
    if limits is None:
        return dataclasses.replace(result, table=table)
    return dataclasses.replace(result, minimum=limits[0], maximum=limits[1])


def _limits(table: NDArray[np.uint8], result: Result, signed: bool) -> tuple[int, int] | None:
    """The limits that have the effect of a table on what ``result`` can be, if there are such."""
    possible = np.arange(min(result.minimum, result.maximum), result.maximum + 1)
    values = table[possible & 0xFF].astype(np.int32)
    values = np.where(values > 127, values - 256, values) if signed else values
    low, high = int(values.min()), int(values.max())
    return (low, high) if (np.clip(possible, low, high) == values).all() else None


def _pools_in_bands(window: Window, plane: Tensor, config: Config) -> bool:
    """Whether the maximum of the sums of a plane can be taken band by band."""
    height, width = window.outputs(plane.height, plane.width)
    needed = window.rows(range(height), plane.height), window.columns(range(width), plane.width)
    if len(needed[0]) * len(needed[1]) <= config.accumulator_rows // 2:
        return True
    # A window's rows of sums must fit, and neighbouring bands share none of them.
    fits = len(window.rows(range(1), plane.height)) * plane.width <= config.accumulator_rows // 2
    return fits and (height == 1 or window.stride_y >= window.height)
