"""The computer's end of a serial link: delivers messages over a wire that corrupts, loses and repeats bytes."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from openmxu.arch.serial import LINK_VERSION, NONCE_BYTES, FrameKind
from openmxu.device import DeviceError
from openmxu.driver.serial_frames import Deframer, Frame, encode_frame

__all__ = ["BytePort", "LinkStatistics", "NoAnswerError", "PortError", "RetryError", "SerialLink"]


class PortError(DeviceError):
    """A serial port cannot be opened, or fails: it was closed at the other end, or unplugged."""


class NoAnswerError(DeviceError):
    """No device at the other end of a serial port answers in this protocol."""


class RetryError(DeviceError):
    """A device that had answered before stopped answering, after all attempts."""


class BytePort(Protocol):
    """The interface that a link needs of a serial port; pyserial's ports have it.

    Attributes
    ----------
    baudrate
        Bits per second; may be changed.
    """

    baudrate: int

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""

    def read(self, size: int = 1) -> bytes:
        """Read up to this many bytes; fewer after the port's time-out."""

    def write(self, content: bytes) -> int:
        """Send bytes."""

    def close(self) -> None:
        """Release the port."""


@dataclass
class LinkStatistics:
    """Counts on a link: frames sent and received, good and bad ones, messages sent or received again, and bytes."""

    sent: int = 0
    received: int = 0
    bad: int = 0
    sent_again: int = 0
    received_again: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class SerialLink:
    """Delivers each message exactly once and in order, or raises an error.

    Parameters
    ----------
    port
        A port with a short time-out for reads. Closed with the link.
    name
        Name of the port, for error messages.
    timeout
        Seconds until a frame without answer is sent again.
    attempts
        How often a frame is sent before the link fails.
    rates
        Bits per second to try in turn until the device answers; none for the port's own rate.

    Raises
    ------
    NoAnswerError
        Nothing answers, or a device with another version of the protocol does.
    PortError
        The port fails.
    """

    def __init__(
        self, port: BytePort, name: str, *, timeout: float = 0.25, attempts: int = 40, rates: Sequence[int] = ()
    ) -> None:
        self._port = port
        self._name = name
        self._timeout = timeout
        self._attempts = attempts
        self._deframer = Deframer()
        self._statistics = LinkStatistics()
        self._number = 0  # of the message under way, or of the last one
        self._under_way: bytes | None = None
        self._resend_at = 0.0
        self._sent_times = 0
        self._dealt_with = 0
        self._owes = False
        self._given = self._acknowledged = 0  # messages
        self._waiting: deque[bytes] = deque()
        self._arrived: deque[bytes] = deque()
        self._failure: DeviceError | None = None
        self._synchronize(rates or (port.baudrate,))

    @property
    def baud(self) -> int:
        """Bits per second at which the device answered."""
        return self._port.baudrate

    @property
    def statistics(self) -> LinkStatistics:
        """The counts so far."""
        self._statistics.bad = self._deframer.bad
        return self._statistics

    def send(self, message: bytes) -> int:
        """Queue a message and send it in turn; :meth:`receive` repeats it until it arrives. Raises as :meth:`receive`.

        Returns
        -------
        The message's number for :meth:`has_arrived`.
        """
        self._check()
        self._waiting.append(message)
        self._given += 1
        self._send_next()
        return self._given

    def has_arrived(self, message: int) -> bool:
        """Whether the other end has acknowledged this message."""
        return self._acknowledged >= message

    def receive(self) -> bytes | None:
        """The next message, or ``None`` if none arrives within the port's time-out.

        Raises
        ------
        RetryError
            A message was not acknowledged in all attempts.
        PortError
            The port fails.
        """
        self._check()
        if not self._arrived:
            # The answer to a message would have acknowledged it; now that no answer follows, send a separate
            # acknowledgement.
            self._acknowledge()
            for frame in self._read():
                self._take(frame)
            self._send_again()
        return self._arrived.popleft() if self._arrived else None

    @property
    def patience(self) -> float:
        """Seconds after which the link fails if a message is not acknowledged."""
        return self._timeout * self._attempts

    def close(self) -> None:
        """Close the port."""
        self._port.close()

    def _synchronize(self, rates: Sequence[int]) -> None:
        """Reset the numbering of messages at both ends."""
        nonce = 0
        while nonce == 0:
            nonce = secrets.randbits(8 * NONCE_BYTES)
        request = Frame(FrameKind.SYNCHRONIZE, contents=nonce.to_bytes(NONCE_BYTES, "little"))
        for attempt in range(self._attempts):
            self._set_rate(rates[attempt % len(rates)])
            self._write(request)
            deadline = time.monotonic() + self._timeout
            while time.monotonic() < deadline:
                for frame in self._read():
                    if frame.kind is FrameKind.SYNCHRONIZED and frame.contents[:NONCE_BYTES] == request.contents:
                        self._check_version(frame.contents[NONCE_BYTES:])
                        return
        raise NoAnswerError(
            f"{self._name}: no answer to {self._attempts} frames at {', '.join(map(str, rates))} baud; is it the right "
            "port, with the right baud rate, and is the board configured?"
        )

    def _set_rate(self, baud: int) -> None:
        if self._port.baudrate == baud:
            return
        try:
            self._port.baudrate = baud
        except (OSError, ValueError) as error:
            raise PortError(f"{self._name}: the port cannot be set to {baud} baud: {error}") from None

    def _check_version(self, version: bytes) -> None:
        if version != bytes([LINK_VERSION]):
            raise NoAnswerError(
                f"{self._name}: the device speaks version {version.hex()} of the link, not {LINK_VERSION}"
            )

    def _take(self, frame: Frame) -> None:
        """Process an intact frame."""
        if frame.kind not in (FrameKind.MESSAGE, FrameKind.ACKNOWLEDGE):
            return
        if frame.kind is FrameKind.MESSAGE:
            if frame.number == (self._dealt_with + 1) % 256:
                self._dealt_with = frame.number
                self._arrived.append(frame.contents)
            else:
                self._statistics.received_again += 1
            self._owes = True
        # ``_dealt_with`` is updated first, so that a message sent now acknowledges the received one.
        if self._under_way is not None and frame.dealt_with == self._number:
            self._under_way = None
            self._acknowledged += 1
            self._send_next()

    def _send_next(self) -> None:
        if self._under_way is None and self._waiting:
            self._under_way = self._waiting.popleft()
            self._number = (self._number + 1) % 256
            self._sent_times = 0
            self._send_message()

    def _send_message(self) -> None:
        assert self._under_way is not None, "there is a message to send"
        self._write(Frame(FrameKind.MESSAGE, self._number, self._dealt_with, self._under_way))
        self._sent_times += 1
        self._resend_at = time.monotonic() + self._timeout

    def _send_again(self) -> None:
        if self._under_way is None or time.monotonic() < self._resend_at:
            return
        if self._sent_times == self._attempts:
            raise self._fail(
                RetryError(f"{self._name}: the device does not answer any more: {self._attempts} frames went unheard")
            )
        self._statistics.sent_again += 1
        self._send_message()

    def _acknowledge(self) -> None:
        if self._owes:
            self._write(Frame(FrameKind.ACKNOWLEDGE, 0, self._dealt_with))

    def _read(self) -> list[Frame]:
        try:
            received = self._port.read(1)
            if received:
                received += self._port.read(self._port.in_waiting)
        except OSError as error:
            raise self._fail(self._port_error(error)) from None
        self._statistics.bytes_received += len(received)
        frames = self._deframer.frames(received)
        self._statistics.received += len(frames)
        return frames

    def _write(self, frame: Frame) -> None:
        self._owes = False
        content = encode_frame(frame)
        self._statistics.sent += 1
        self._statistics.bytes_sent += len(content)
        try:
            self._port.write(content)
        except OSError as error:
            raise self._fail(self._port_error(error)) from None

    def _fail(self, error: DeviceError) -> DeviceError:
        """Store the error: every later call raises it, too."""
        self._failure = error
        return error

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _port_error(self, error: OSError) -> PortError:
        return PortError(f"{self._name}: the port fails: {error}")
