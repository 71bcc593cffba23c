"""A device at the end of a serial cable: registers by messages, and memories that this computer serves."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from openmxu.arch.registers import StatusBit, device_register
from openmxu.arch.serial import DATA_BYTES, DEFAULT_BAUD, MessageKind, ReplyStatus
from openmxu.driver.serial_frames import Message, decode_message, encode_message
from openmxu.driver.serial_link import (
    BytePort,
    LinkStatistics,
    NoAnswerError,
    PortError,
    RetryError,
    SerialLink,
)
from openmxu.driver.transport import MemoryKind, Region, Transport

__all__ = ["SerialTransport", "open_port"]

BASE = 4096
"""Address of the first byte of both memories."""

_TICK = 0.005
"""Seconds that a read waits for a byte."""

_READS = {
    MessageKind.READ_PROGRAM: (MemoryKind.HOST, MessageKind.PROGRAM_DATA),
    MessageKind.READ_HOST: (MemoryKind.HOST, MessageKind.HOST_DATA),
    MessageKind.READ_WEIGHTS: (MemoryKind.WEIGHT, MessageKind.WEIGHT_DATA),
}


def open_port(port: str, baud: int = DEFAULT_BAUD) -> BytePort:
    """Open a serial port, given by name or as a URL of pyserial.

    Raises
    ------
    PortError
        There is no such port, it is in use, or pyserial is not installed.
    """
    try:
        import serial
    except ImportError:
        raise PortError("a serial port needs pyserial: install it with: pip install 'openmxu[serial]'") from None
    try:
        opened = serial.serial_for_url(port, baudrate=baud, timeout=_TICK, write_timeout=5.0, exclusive=True)
        opened.reset_input_buffer()
    except (OSError, ValueError) as error:
        raise PortError(f"cannot open {port}: {_reason(error)}") from None
    return opened


def _reason(error: Exception) -> str:
    """The reason alone: pyserial's messages repeat the port's name."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EAGAIN:
        return "another program uses it"
    return str(error) if number is None else os.strerror(number)


class SerialTransport(Transport):
    """Register access over a serial link; serves the device's memory accesses while it waits for the device.

    Memory accesses are not served between calls; the device repeats its requests, so that nothing is lost.

    Parameters
    ----------
    port
        See :class:`~openmxu.driver.serial_link.SerialLink`, also for ``name``, ``timeout``, ``attempts`` and ``rates``.
    name, timeout, attempts, rates
    patience
        Seconds after which :meth:`wait` returns without an interrupt, and within which a register access is answered.
    memory_bytes
        Size of each memory, as far as the device's addresses reach.
    longest_answer
        Longest time in which the memories answer, in the device's cycles, repeated frames included.

    Raises
    ------
    NoAnswerError, PortError
        See :class:`~openmxu.driver.serial_link.SerialLink`.
    """

    def __init__(
        self,
        port: BytePort,
        name: str,
        *,
        timeout: float = 0.25,
        attempts: int = 40,
        rates: Sequence[int] = (),
        patience: float = 5.0,
        memory_bytes: int = 1 << 28,
        longest_answer: int = 1 << 31,
    ) -> None:
        if memory_bytes < BASE:
            raise ValueError(f"memory_bytes must be at least {BASE}, not {memory_bytes}")
        self._name = name
        self._patience = patience
        self.longest_answer = longest_answer
        self._interrupted = False
        self._values: list[int] = []
        try:
            self._link = SerialLink(port, name, timeout=timeout, attempts=attempts, rates=rates)
            # Memories end where the device's addresses do.
            widths = {
                kind: self.read_register(device_register(f"CONFIG_{kind.name}_ADDRESS_WIDTH").offset)
                for kind in MemoryKind
            }
        except BaseException:
            port.close()
            raise
        self._regions = {
            kind: Region(BASE, max(0, min(memory_bytes, (1 << min(width, 64)) - BASE)))
            for kind, width in widths.items()
        }
        self._memories = {kind: np.zeros(region.size, np.uint8) for kind, region in self._regions.items()}

    @property
    def statistics(self) -> LinkStatistics:
        """The link's counts so far."""
        return self._link.statistics

    @property
    def baud(self) -> int:
        """Bits per second at which the device answered."""
        return self._link.baud

    def read_register(self, offset: int) -> int:
        """Read the 32-bit word at a byte offset in the device's registers.

        Raises
        ------
        RetryError
            The device does not answer.
        PortError
            The port fails.
        """
        self._values.clear()
        self._link.send(encode_message(MessageKind.READ_REGISTER, offset=offset))
        self._serve(lambda: bool(self._values), f"the register at {offset:#x} is not answered")
        return self._values.pop()

    def write_register(self, offset: int, value: int) -> None:
        """Write the 32-bit word at a byte offset in the device's registers; raises as :meth:`read_register`."""
        write = self._link.send(encode_message(MessageKind.WRITE_REGISTER, offset=offset, value=value))
        self._serve(lambda: self._link.has_arrived(write), f"a write of the register at {offset:#x} is not answered")

    def region(self, memory: MemoryKind) -> Region:
        """The range of addresses of a memory."""
        return self._regions[memory]

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        """Read bytes of a memory."""
        return self._memories[memory][address - BASE :][:size].tobytes()

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        """Write bytes of a memory."""
        self._memories[memory][address - BASE :][: len(content)] = np.frombuffer(content, np.uint8)

    def wait(self) -> bool:
        """Serve the device until its interrupt is set or ``patience`` has passed; raises as :meth:`read_register`."""
        status = self.read_register(device_register("STATUS").offset)
        if status >> StatusBit.INTERRUPT & 1:
            return True
        deadline = time.monotonic() + self._patience
        # An interrupt message that arrived before the status has been discarded: it may be out of date.
        while not self._interrupted and time.monotonic() < deadline:
            self._serve_once()
        return self._interrupted

    def close(self) -> None:
        """Close the port."""
        self._link.close()

    def _serve(self, is_done: Callable[[], bool], otherwise: str) -> None:
        """Serve the device until a condition holds."""
        deadline = time.monotonic() + self._link.patience + self._patience
        while not is_done():
            if time.monotonic() > deadline:
                raise RetryError(f"{self._name}: {otherwise}")
            self._serve_once()

    def _serve_once(self) -> None:
        """Process the next message, if one arrives."""
        contents = self._link.receive()
        if contents is None:
            return
        try:
            message = decode_message(contents)
        except ValueError as error:
            raise NoAnswerError(f"{self._name}: the device speaks another protocol: {error}") from None
        if message.kind is MessageKind.REGISTER_VALUE:
            self._values.append(message.fields["value"])
            self._interrupted = False
        elif message.kind is MessageKind.INTERRUPT:
            self._interrupted = True
        elif message.kind is MessageKind.WRITE_HOST:
            self._link.send(encode_message(MessageKind.HOST_WRITTEN, status=self._write(message)))
        elif message.kind in _READS:
            self._answer(message)
        else:
            raise NoAnswerError(f"{self._name}: the device speaks another protocol: {message.kind.name} is for devices")

    def _answer(self, message: Message) -> None:
        memory, answer = _READS[message.kind]
        address, length = message.fields["address"], message.fields["length"]
        if length <= DATA_BYTES and self._is_inside(memory, address, length):
            content = self.read_memory(memory, address, length)
            self._link.send(encode_message(answer, content, status=ReplyStatus.OKAY))
        else:
            self._link.send(encode_message(answer, status=ReplyStatus.NO_MEMORY))

    def _write(self, message: Message) -> ReplyStatus:
        address = message.fields["address"]
        if not self._is_inside(MemoryKind.HOST, address, len(message.data)):
            return ReplyStatus.NO_MEMORY
        self.write_memory(MemoryKind.HOST, address, message.data)
        return ReplyStatus.OKAY

    def _is_inside(self, memory: MemoryKind, address: int, length: int) -> bool:
        region = self._regions[memory]
        return region.base <= address and address + length <= region.base + region.size
