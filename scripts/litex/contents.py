"""The contents of the DRAM when the system starts: a table of contents, compiled programs, and their images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.embedded import program_image
from openmxu.embedded.program_image import device_segment, host_bytes
from openmxu.program import Program

__all__ = ["Network", "memory_contents", "memory_parts"]

_MAGIC = 0x4C42544D
_NAME_BYTES = 16
_ALIGNMENT = 4096
_BUFFERS = 2


@dataclass(frozen=True)
class Network:
    """A compiled network with its images.

    Attributes
    ----------
    name
        Name, up to 15 letters.
    program
        The program.
    images
        The images, of the type and the shape of the program's input: (count, *shape).
    """

    name: str
    program: Program
    images: NDArray[Any]


def memory_parts(networks: Sequence[Network], size: int) -> list[tuple[int, bytes]]:
    """Parts of the DRAM with their places, as ``firmware/table.h`` describes them; the rest may hold anything.

    The first one is the table of contents, at 0.

    Parameters
    ----------
    networks
        What the firmware runs.
    size
        Bytes of the DRAM.

    Raises
    ------
    ValueError
        They do not fit.
    """
    table = np.array([_MAGIC, len(networks)], "<u4").tobytes()
    place = _ALIGNMENT
    parts: list[tuple[int, bytes]] = []
    for network in networks:
        (tensor,) = device_segment(network.program).inputs
        images = tensor.to_integers(network.images)
        stored = np.ascontiguousarray(images, images.dtype.newbyteorder("<")).tobytes()
        room = -(-host_bytes(network.program) // _ALIGNMENT) * _ALIGNMENT
        numbers: list[int] = []
        for content in (program_image(network.program), None, stored):
            length = room if content is None else len(content)
            numbers += [place, length]
            if content is not None:
                parts.append((place, content))
            place += (_BUFFERS if content is None else 1) * length
            place = -(-place // _ALIGNMENT) * _ALIGNMENT
        count = len(network.images)
        numbers[-1:] = [len(stored) // count, count]
        table += network.name.encode("ascii").ljust(_NAME_BYTES, b"\0") + np.array(numbers, "<u4").tobytes()
    if place > size:
        raise ValueError(f"the networks take {place} bytes of DRAM, and there are {size}")
    return [(0, table), *parts]


def memory_contents(networks: Sequence[Network], size: int) -> NDArray[np.uint8]:
    """The first bytes of the DRAM with these parts, zeros between them; parameters and errors are the same."""
    parts = memory_parts(networks, size)
    memory = np.zeros(max(place + len(content) for place, content in parts), np.uint8)
    for place, content in parts:
        memory[place : place + len(content)] = np.frombuffer(content, np.uint8)
    return memory
