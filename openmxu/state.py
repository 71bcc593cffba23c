"""Tensors that stay in the unified buffer from one execution of a program to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Instruction, format_named
from openmxu.segments.host_tensor import HostTensor

if TYPE_CHECKING:
    from openmxu.device import Device

__all__ = ["State", "read_states", "write_states"]

_READ = format_named("Read_Host_Memory")
_WRITE = format_named("Write_Host_Memory")
_HALT = format_named("Halt")


@dataclass(frozen=True)
class State:
    """A tensor that stays in the unified buffer.

    Attributes
    ----------
    tensor
        The model's input that it replaces, as the user sees it. Its ``offset`` is its place in a host memory that holds
        only states.
    output
        The model's output that would be fed back to that input.
    unified_buffer
        Its first row.
    parts
        Batch elements of each part of the batch. The parts lie one after the other, each of them plane by plane.
    """

    tensor: HostTensor
    output: str
    unified_buffer: int
    parts: tuple[int, ...]

    def transfers(self, transfer: Callable[..., Instruction], size: int) -> Iterator[Instruction]:
        """Instructions that transfer it from or to host memory."""
        tensor, batch = self.tensor, sum(self.parts)
        item = np.dtype(tensor.stored).itemsize
        row, first = self.unified_buffer, 0
        for count in self.parts:
            for plane in range(-(-tensor.columns // size)):
                host = tensor.offset + (plane * batch + first) * item * size
                yield transfer(unified_buffer=row, host=host, rows=count * item)
                row += count * item
            first += count


def write_states(device: Device, states: tuple[State, ...], values: Mapping[str, NDArray[np.float32]]) -> None:
    """Write the values of states: arrays by name, (batch, *shape); states that are not given become 0."""
    size = device.config.size
    host = np.zeros(_extent(states, size), np.uint8)
    for state in states:
        if state.tensor.name in values:
            state.tensor.store(values[state.tensor.name], host, size)
    device.execute(_program(states, _READ, size), host, np.zeros(0, np.uint8))


def read_states(device: Device, states: tuple[State, ...]) -> dict[str, NDArray[np.float32]]:
    """The values of states by name, (batch, *shape)."""
    size = device.config.size
    host = np.zeros(_extent(states, size), np.uint8)
    device.execute(_program(states, _WRITE, size), host, np.zeros(0, np.uint8))
    return {state.tensor.name: state.tensor.load(host, sum(state.parts), size) for state in states}


def _program(states: tuple[State, ...], transfer: Callable[..., Instruction], size: int) -> list[Instruction]:
    return [*(item for state in states for item in state.transfers(transfer, size)), _HALT()]


def _extent(states: tuple[State, ...], size: int) -> int:
    return max(state.tensor.offset + state.tensor.extent(sum(state.parts), size) for state in states)
