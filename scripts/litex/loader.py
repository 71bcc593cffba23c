"""Puts contents into the DRAM of a board, and lets its firmware run them, over a serial port.

The frames are those of LiteX's serial boot; ``firmware/receive.h`` describes them.
"""

from __future__ import annotations

import binascii
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

__all__ = ["END_OF_TRANSMISSION", "QUIET", "LoadError", "Loader", "Port"]

END_OF_TRANSMISSION = 4
"""The byte after the last line of a run."""

_ABORT, _LOAD, _JUMP = 0, 1, 2
_DONE = b"K"
_ANSWERS = {
    b"": "does not answer",
    b"C": "finds damaged frames",
    b"U": "does not know the command",
    b"E": "refuses the address, or misses bytes",
}
_PAYLOAD = 248
"""Bytes of a frame besides their address: whole words, and a length below 256."""

_AHEAD = 16
"""Frames on their way before the first of them is answered: a USB chip holds an answer back for some milliseconds."""

_ATTEMPTS = 4
QUIET = 0.3
"""Seconds without a byte after which a board's firmware waits for a new frame: more than the gap that it allows in one,
and than a USB chip holds bytes back."""

_ANSWER = 0.3
"""Seconds within which a frame is answered."""

_SHOWN = 60
"""The last bytes of a board that does not listen, in an error."""


class LoadError(Exception):
    """The board does not do what it should; the message says what it does instead."""


class Port(Protocol):
    """The part of pyserial's ports that is used."""

    timeout: float | None

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""

    def read(self, size: int = 1, /) -> bytes:
        """Some bytes; fewer when ``timeout`` is over."""

    def write(self, data: bytes, /) -> int | None:
        """Send bytes."""


class Loader:
    """A board whose firmware receives frames.

    Parameters
    ----------
    port
        Its serial port.
    origin
        Address of its DRAM.
    timeout
        Seconds without a byte after which a run has failed, and within which the board must fall silent to be loaded.
    quiet
        Seconds without a byte after which it is silent.
    """

    def __init__(self, port: Port, origin: int, timeout: float = 10.0, quiet: float = QUIET) -> None:
        self._port = port
        self._origin = origin
        self._timeout = timeout
        self._quiet = quiet

    def connect(self) -> None:
        """Wait until the firmware listens.

        Raises
        ------
        LoadError
            It does not answer, or does not stop sending.
        """
        answer = b""
        for attempt in range(_ATTEMPTS):
            self._discard()
            self._port.write(_frame(_ABORT, b""))
            self._port.timeout = _ANSWER
            answer = self._port.read(1)
            if answer == _DONE:
                if attempt:
                    self._discard()  # late answers to earlier attempts
                return
        raise LoadError(f"the board {_ANSWERS.get(answer, f'answers {answer!r}')}")

    def _discard(self) -> None:
        """Wait until the board is silent."""
        self._port.timeout = self._quiet
        end, last = time.monotonic() + self._timeout, b""
        while received := self._port.read(max(1, self._port.in_waiting)):
            last = (last + received)[-_SHOWN:]
            if time.monotonic() > end:
                raise LoadError(f"the board does not listen; it keeps sending {last.decode('ascii', 'replace')!r}")

    def write(self, parts: Iterable[tuple[int, bytes]]) -> None:
        """Write bytes to places in the DRAM, several frames ahead of the answers; damaged ones are sent again.

        Raises
        ------
        LoadError
            A frame fails again and again.
        """
        self._send(
            _frame(_LOAD, (self._origin + place + start).to_bytes(4, "big") + content[start : start + _PAYLOAD])
            for place, content in parts
            for start in range(0, len(content), _PAYLOAD)
        )

    def run(self, table: int = 0) -> Iterator[str]:
        """The lines that the firmware prints about the networks of the table of contents at a place.

        Raises
        ------
        LoadError
            The firmware does not begin, or prints nothing for too long.
        """
        self._send([_frame(_JUMP, (self._origin + table).to_bytes(4, "big"))])
        self._port.timeout = self._timeout
        line = bytearray()
        while received := self._port.read(max(1, self._port.in_waiting)):
            for byte in received:
                if byte == END_OF_TRANSMISSION:
                    return
                if byte == ord("\n"):
                    yield line.decode("ascii", "replace")
                    line.clear()
                else:
                    line.append(byte)
        words = f"; its last words: {line.decode('ascii', 'replace')!r}" if line else ""
        raise LoadError(f"the board has sent nothing for {self._timeout:g} s{words}")

    def _send(self, frames: Iterable[bytes]) -> None:
        waiting, sent, failures = iter(frames), deque[bytes](), 0
        again: deque[bytes] = deque()
        while True:
            while len(sent) < _AHEAD and (frame := again.popleft() if again else next(waiting, None)) is not None:
                self._port.write(frame)
                sent.append(frame)
            if not sent:
                return
            self._port.timeout = _ANSWER
            answer = self._port.read(1)
            if answer == _DONE:
                sent.popleft()
                failures = 0
                continue
            failures += 1
            if failures == _ATTEMPTS:
                raise LoadError(f"the board {_ANSWERS.get(answer, f'answers {answer!r}')}")
            # Bytes that are lost shift all frames behind them: begin again where the last good one ended.
            self.connect()
            again.extendleft(reversed(sent))
            sent.clear()


def _frame(command: int, payload: bytes) -> bytes:
    body = bytes([command]) + payload
    return bytes([len(payload)]) + binascii.crc_hqx(body, 0).to_bytes(2, "big") + body
