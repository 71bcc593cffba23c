"""Steps between host memory and the unified buffer, and from there to parameters and tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.sim.interpreter.memories import Memories, Step

__all__ = ["load_parameters", "load_table", "read_host_memory", "write_host_memory"]


def read_host_memory(memories: Memories, values: Mapping[str, int], stride: int) -> Step:
    """Read_Host_Memory with the fields ``values``, and its alternate form: rows ``stride`` bytes apart."""
    first, rows = values["unified_buffer"], values["rows"]
    target = memories.unified_buffer[first : first + rows]

    def read() -> None:
        target[:] = _host_rows(memories.host, values["host"], target.shape, stride)

    return read


def write_host_memory(memories: Memories, values: Mapping[str, int], stride: int) -> Step:
    """Write_Host_Memory, likewise; where rows overlap, the later one remains."""
    first, rows = values["unified_buffer"], values["rows"]
    source = memories.unified_buffer[first : first + rows]

    def write() -> None:
        target = _host_rows(memories.host, values["host"], source.shape, stride)
        if stride >= source.shape[1]:
            target[:] = source
            return
        for row, bytes_ in zip(target, source, strict=True):
            row[:] = bytes_

    return write


def _host_rows(host: NDArray[np.uint8], first: int, shape: tuple[int, ...], stride: int) -> NDArray[np.uint8]:
    """The rows of a transfer as a view of host memory, (rows, S); they may overlap."""
    rows, size = shape
    if stride == size:
        return host[first : first + rows * size].reshape(shape)
    return np.lib.stride_tricks.as_strided(host[first : first + size], shape, (stride, 1))


def load_parameters(memories: Memories, values: Mapping[str, int]) -> Step:
    """Loading of biases and scales, with the fields of LOAD_PARAMETERS."""
    first, count, size = values["first"], values["count"], memories.biases.shape[1]
    start = values["unified_buffer"]
    rows = memories.unified_buffer[start : start + PARAMETER_ROWS * count].reshape(count, PARAMETER_ROWS, size)
    biases, scales = memories.biases[first : first + count], memories.scales[first : first + count]

    def load() -> None:
        columns = np.ascontiguousarray(rows.transpose(0, 2, 1))
        biases[:] = columns[:, :, :4].copy().view("<i4")[:, :, 0]
        scales[:] = columns[:, :, 4:].copy().view("<f4")[:, :, 0]

    return load


def load_table(memories: Memories, values: Mapping[str, int]) -> Step:
    """Loading of a table, with the fields of LOAD_TABLE."""
    start = values["unified_buffer"]
    rows = memories.unified_buffer[start : start + table_rows(memories.unified_buffer.shape[1])]
    table = memories.tables[values["number"]]

    def load() -> None:
        table[:] = rows.reshape(-1)

    return load
