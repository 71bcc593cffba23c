"""The parts of a program that the device computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.host_tensor import HostTensor

__all__ = ["DeviceSegment"]


@dataclass(frozen=True)
class DeviceSegment:
    """Some of a program's instructions, which run without a break.

    Attributes
    ----------
    inputs, outputs
        The arrays that it reads and writes, with their places in host memory.
    batch
        Batch elements that one execution computes.
    elements
        Batch elements that its arrays always have; ``None`` if it takes any number.
    start, stop
        Its instructions among those of the program; the last one is Halt.
    layers
        Its layers among those of the program: the first one, and the one behind the last.
    constants
        Place of its constants in host memory: first byte, and number of bytes.
    """

    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    batch: int
    elements: int | None
    start: int
    stop: int
    layers: tuple[int, int]
    constants: tuple[int, int]

    def run(
        self,
        values: Mapping[str, NDArray[Any]],
        execute: Callable[[DeviceSegment, Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]],
    ) -> dict[str, NDArray[Any]]:
        """The outputs by name.

        Parameters
        ----------
        values
            Arrays by name, the inputs among them.
        execute
            One execution: from the inputs by name, of up to ``batch`` elements, the batch in front, to the outputs of
            ``batch`` elements.
        """
        given = {tensor.name: np.moveaxis(values[tensor.name], tensor.batch_axis, 0) for tensor in self.inputs}
        count = len(next(iter(given.values())))
        parts = [
            execute(self, {name: array[start : start + self.batch] for name, array in given.items()})
            for start in range(0, count, self.batch)
        ]
        results = {}
        for tensor in self.outputs:
            array = np.zeros((0, *tensor.shape), tensor.dtype)
            if parts:
                array = np.concatenate([part[tensor.name] for part in parts])[:count]
            results[tensor.name] = np.moveaxis(array, 0, tensor.batch_axis)
        return results

    def specs(self, tensors: Sequence[HostTensor]) -> list[ArraySpec]:
        """Some of its arrays as other segments see them: whole where their batch is always the same."""
        specs = [tensor.spec for tensor in tensors]
        return specs if self.elements is None else [spec.whole(self.elements) for spec in specs]

    def store_inputs(self, values: Mapping[str, NDArray[Any]], memory: NDArray[np.uint8], size: int) -> None:
        """Write its inputs, the batch in front, to host memory, padded with zeros to ``batch`` elements."""
        for tensor in self.inputs:
            array = values[tensor.name]
            padded = np.zeros((self.batch, *tensor.shape), tensor.dtype)
            padded[: len(array)] = array
            tensor.store(padded, memory, size)

    def load_outputs(self, memory: NDArray[np.uint8], size: int) -> dict[str, NDArray[Any]]:
        """Its outputs in host memory by name, each of shape (batch, *shape)."""
        return {tensor.name: tensor.load(memory, self.batch, size) for tensor in self.outputs}

    def read_inputs(self, memory: NDArray[np.uint8], size: int) -> bytes:
        """The bytes of its inputs in host memory, one input after the other."""
        return b"".join(memory[place].tobytes() for place in self._places(self.inputs, size))

    def read_outputs(self, memory: NDArray[np.uint8], size: int) -> bytes:
        """The bytes of its outputs, likewise."""
        return b"".join(memory[place].tobytes() for place in self._places(self.outputs, size))

    def write_inputs(self, content: bytes, memory: NDArray[np.uint8], size: int) -> None:
        """Undo :meth:`read_inputs`.

        Raises
        ------
        ValueError
            The number of bytes is another one.
        """
        _write(content, memory, self._places(self.inputs, size), "inputs")

    def write_outputs(self, content: bytes, memory: NDArray[np.uint8], size: int) -> None:
        """Undo :meth:`read_outputs`; raises as :meth:`write_inputs`."""
        _write(content, memory, self._places(self.outputs, size), "outputs")

    def _places(self, tensors: Sequence[HostTensor], size: int) -> list[slice]:
        return [tensor.place(self.batch, size) for tensor in tensors]


def _write(content: bytes, memory: NDArray[np.uint8], places: Sequence[slice], what: str) -> None:
    wanted = sum(place.stop - place.start for place in places)
    if len(content) != wanted:
        raise ValueError(f"the {what} of the segment are {wanted} bytes, not {len(content)}")
    given, taken = np.frombuffer(content, np.uint8), 0
    for place in places:
        count = place.stop - place.start
        memory[place] = given[taken : taken + count]
        taken += count
