"""The interface between a driver and its connection to a device."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from enum import Enum

from openmxu.arch.registers import OFFSET_ALIGNMENT

__all__ = ["MemoryKind", "Region", "Transport"]


class MemoryKind(Enum):
    """The two memories that a device reaches by itself."""

    HOST = "host"
    WEIGHT = "weight"


@dataclass(frozen=True)
class Region:
    """Bytes that the driver may use: the address at which the device sees the first one, and how many there are."""

    base: int
    size: int

    def divide(self, size: int, what: str) -> tuple[Region, Region]:
        """The first ``size`` bytes, and the rest from an address on that HOST_OFFSET and WEIGHT_OFFSET can have.

        Raises
        ------
        ValueError
            There are fewer bytes; the message begins with ``what``.
        """
        if size > self.size:
            raise ValueError(f"{what} has {size} bytes, more than the {self.size} there are")
        used = min(-(-size // OFFSET_ALIGNMENT) * OFFSET_ALIGNMENT, self.size)
        return Region(self.base, size), Region(self.base + used, self.size - used)


class Transport(abc.ABC):
    """Registers, memory and interrupt of one device; simulated, on this machine's bus, or at the end of a cable."""

    longest_answer: int = 1 << 26
    """Longest time in which the memories answer, in the device's cycles; its watchdog stops a program that waits
    longer."""

    @abc.abstractmethod
    def read_register(self, offset: int) -> int:
        """Read the 32-bit word at a byte offset in the device's registers."""

    @abc.abstractmethod
    def write_register(self, offset: int, value: int) -> None:
        """Write the 32-bit word at a byte offset in the device's registers."""

    @abc.abstractmethod
    def region(self, memory: MemoryKind) -> Region:
        """The part of a memory that belongs to the driver; it begins at a multiple of 4096 bytes."""

    @abc.abstractmethod
    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        """Read bytes of a memory; ``address`` is that which the device uses."""

    @abc.abstractmethod
    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        """Write bytes, so that the device sees them before it sees a later write of a register."""

    @abc.abstractmethod
    def wait(self) -> bool:
        """Wait until the interrupt is set, or for a time in which a working device would have made progress.

        Returns
        -------
        Whether the interrupt is set.
        """

    def close(self) -> None:
        """Release the transport's resources."""
