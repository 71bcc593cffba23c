"""What lies in host memory before a program runs: parameter sets, tables and constant tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.compiler.emit.activate import pooling_scales
from openmxu.compiler.emit.memory import aligned, parameter_bytes
from openmxu.compiler.emit.strip import has_table
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Convolution, Operation, Pooling
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.constants import cell_parameters

__all__ = ["Constants"]


@dataclass(frozen=True)
class Constants:
    """What lies in host memory from the beginning.

    Attributes
    ----------
    data
        All of it.
    parameters, sets
        For each operation the address of its first parameter set, and their number.
    tables
        Addresses, by number of the operation and of the table in it.
    tensors
        Addresses, by name.
    """

    data: NDArray[np.uint8]
    parameters: tuple[int, ...]
    sets: tuple[int, ...]
    tables: Mapping[tuple[int, int], int]
    tensors: Mapping[str, int]

    @classmethod
    def of(cls, network: Network, size: int) -> Constants:
        """The constants of a network from address 0 on."""
        parts: list[NDArray[np.uint8]] = []
        end = 0

        def place(part: NDArray[np.uint8]) -> int:
            nonlocal end
            address = end
            padded = np.zeros(aligned(part.size), np.uint8)
            padded[: part.size] = part
            parts.append(padded)
            end += padded.size
            return address

        parameters, sets, tables = [], [], {}
        for index, operation in enumerate(network.operations):
            data = _operation_parameters(operation, network, size)
            parameters.append(place(data))
            sets.append(data.size // (PARAMETER_ROWS * size))
            if has_table(operation.result):
                tables[index, 0] = place(operation.result.table)
            if isinstance(operation, Recurrent):
                tables |= {(index, number): place(table) for number, table in enumerate(operation.tables)}
        tensors = {
            name: place(_plane_bytes(array, network.tensors[name].item, size))
            for name, array in network.constants.items()
        }
        return cls(np.concatenate(parts), tuple(parameters), tuple(sets), tables, tensors)

    def at(self, base: int) -> Constants:
        """The same constants, ``base`` bytes later."""
        return dataclasses.replace(
            self,
            parameters=tuple(base + address for address in self.parameters),
            tables={key: base + address for key, address in self.tables.items()},
            tensors={name: base + address for name, address in self.tensors.items()},
        )


def _operation_parameters(operation: Operation, network: Network, size: int) -> NDArray[np.uint8]:
    """An operation's parameter sets: one for each output tile of a convolution, or for each scale of all columns."""
    if isinstance(operation, Convolution):
        scale = None if operation.result is None else operation.result.scale
        return parameter_bytes(operation.bias, scale, size)
    if isinstance(operation, Recurrent):
        return cell_parameters(operation, size)
    scales = [np.float32(1) if operation.result is None else operation.result.scale]
    if isinstance(operation, Pooling):
        scales = pooling_scales(operation, network.tensors[operation.sources[0]])
    columns = np.repeat(np.array(scales, np.float32), size)
    return parameter_bytes(np.zeros(columns.size, np.int32), columns, size)


def _plane_bytes(array: NDArray[np.int32], item: int, size: int) -> NDArray[np.uint8]:
    """A tensor (height, width, channels) as planes of rows, ``item`` for each position, the lowest bytes first."""
    height, width, channels = array.shape
    planes = -(-channels // size)
    padded = np.zeros((height * width, planes * size, item), np.uint8)
    octets = np.ascontiguousarray(array, "<i4").view(np.uint8).reshape(height * width, channels, 4)
    padded[:, :channels] = octets[:, :, :item]
    rows = padded.reshape(height * width, planes, size, item).transpose(1, 0, 3, 2)
    return np.ascontiguousarray(rows).reshape(-1)
