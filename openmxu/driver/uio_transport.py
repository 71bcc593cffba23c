"""A device on this machine's bus, from Linux user space: registers by UIO, memory by a contiguous buffer."""

from __future__ import annotations

import mmap
import os
import select
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.arch.registers import ADDRESS_WIDTH, OFFSET_ALIGNMENT, WORD_BYTES, StatusBit, device_register
from openmxu.driver.transport import MemoryKind, Region, Transport

__all__ = ["UioError", "UioTransport"]

_ATTRIBUTES = Path("/sys/class/u-dma-buf")
_REGISTER_BYTES = 1 << ADDRESS_WIDTH
_ENABLE = (1).to_bytes(4, "little")
"""Written to a UIO device, it lets the next interrupt through, which has closed the door behind it."""

_POLL = 0.001
"""Seconds between two looks at STATUS where there is no interrupt."""


class UioError(OpenmxuError, OSError):
    """The device's registers or its memory cannot be opened; the message says which, and why."""


class UioTransport(Transport):
    """Registers that the kernel maps by UIO, and memories in one buffer of u-dma-buf.

    The buffer is mapped without caches. Host memory is its first part, weight memory the rest; the device sees both at
    the bus address that the kernel names.

    Parameters
    ----------
    registers
        The UIO device, whose first map is the device's registers.
    memory
        The u-dma-buf device. Its bus address and its size are in the files ``phys_addr`` and ``size`` of its folder
        below ``attributes``.
    weight_bytes
        Size of weight memory, by default half of the buffer; rounded up to a multiple of 4096.
    has_interrupt
        Whether the UIO device has the interrupt; if not, :meth:`wait` looks at STATUS again and again.
    patience
        Seconds after which :meth:`wait` returns without an interrupt.
    attributes
        The folder of u-dma-buf in sysfs.

    Raises
    ------
    UioError
        A file cannot be opened or mapped, or has no sense.
    ValueError
        ``weight_bytes`` leaves no host memory.
    """

    def __init__(
        self,
        registers: str | os.PathLike[str] = "/dev/uio0",
        memory: str | os.PathLike[str] = "/dev/udmabuf0",
        *,
        weight_bytes: int | None = None,
        has_interrupt: bool = True,
        patience: float = 1.0,
        attributes: str | os.PathLike[str] = _ATTRIBUTES,
    ) -> None:
        self._patience, self._has_interrupt = patience, has_interrupt
        folder = Path(attributes) / Path(memory).name
        base, size = _number(folder / "phys_addr"), _number(folder / "size")
        if base % OFFSET_ALIGNMENT:
            raise UioError(f"{folder / 'phys_addr'} is {base:#x}, no multiple of {OFFSET_ALIGNMENT}")
        weights = size // 2 if weight_bytes is None else weight_bytes
        host = (size - weights) // OFFSET_ALIGNMENT * OFFSET_ALIGNMENT
        if weights < 0 or host <= 0:
            raise ValueError(f"weight_bytes is {weights}, and leaves no host memory in a buffer of {size} bytes")
        self._base = base
        self._regions = {
            MemoryKind.HOST: Region(base, host),
            MemoryKind.WEIGHT: Region(base + host, size - host),
        }
        # O_SYNC makes u-dma-buf map without caches.
        self._file, self._registers = _mapped(registers, _REGISTER_BYTES, os.O_RDWR)
        try:
            file, self._memory = _mapped(memory, size, os.O_RDWR | os.O_SYNC)
        except BaseException:
            self.close()
            raise
        os.close(file)
        # One access of 32 bits for each element.
        self._words: NDArray[np.uint32] = np.frombuffer(self._registers, "<u4")
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)

    def read_register(self, offset: int) -> int:
        """The word of 32 bits at a byte offset in the device's registers."""
        return int(self._words[offset // WORD_BYTES])

    def write_register(self, offset: int, value: int) -> None:
        """Write that word."""
        self._words[offset // WORD_BYTES] = value

    def region(self, memory: MemoryKind) -> Region:
        """The part of the buffer that is this memory."""
        return self._regions[memory]

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        """Bytes of a memory."""
        return self._bytes[address - self._base :][:size].tobytes()

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        """Write bytes of a memory."""
        self._bytes[address - self._base :][: len(content)] = np.frombuffer(content, np.uint8)

    def wait(self) -> bool:
        """Wait until the interrupt is set, for ``patience`` seconds at most."""
        if self._has_interrupt:
            if not self._is_interrupted():
                os.write(self._file, _ENABLE)
                if select.select([self._file], [], [], self._patience)[0]:
                    os.read(self._file, 4)
            return self._is_interrupted()
        end = time.monotonic() + self._patience
        while not (found := self._is_interrupted()) and time.monotonic() < end:
            time.sleep(_POLL)
        return found

    def close(self) -> None:
        """Close both devices; their maps go with the last reference."""
        for name in ("_words", "_bytes", "_registers", "_memory"):
            self.__dict__.pop(name, None)
        if (file := self.__dict__.pop("_file", None)) is not None:
            os.close(file)

    def _is_interrupted(self) -> bool:
        status = device_register("STATUS")
        return bool(self.read_register(status.offset) >> StatusBit.INTERRUPT & 1)


def _number(path: Path) -> int:
    """The number in a file of sysfs, decimal or with 0x before it."""
    try:
        return int(path.read_text(encoding="ascii"), 0)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it holds no number"
        raise UioError(f"cannot read {path}: {reason}; is u-dma-buf loaded, and the buffer's name right?") from None


def _mapped(path: str | os.PathLike[str], size: int, flags: int) -> tuple[int, mmap.mmap]:
    """A device's file, open, and its first bytes in memory."""
    try:
        file = os.open(path, flags)
    except OSError as error:
        raise UioError(f"cannot open {os.fspath(path)}: {error.strerror}") from None
    try:
        return file, mmap.mmap(file, size)
    except (OSError, ValueError) as error:
        os.close(file)
        raise UioError(f"cannot map {size} bytes of {os.fspath(path)}: {error}") from None
