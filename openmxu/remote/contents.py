"""Content of any length in messages of a bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openmxu.arch.errors import OpenmxuError

__all__ = ["CHUNK_BYTES", "MOST_BYTES", "Joiner", "TooLongError", "split"]

CHUNK_BYTES = 1 << 20
"""Content of one message at most. gRPC refuses messages of more than 4 MiB before anything reads them."""

MOST_BYTES = 1 << 30
"""Content of one operation at most."""


class TooLongError(OpenmxuError, ValueError):
    """The content of an operation is longer than ``MOST_BYTES``."""


def split(kind: type[Any], content: bytes, **fields: Any) -> Iterator[Any]:
    """Messages that carry an operation and its content; the last one has the operation.

    Parameters
    ----------
    kind
        The class of the messages: Request or Reply.
    fields
        The operation, or the result, by name.
    """
    view = memoryview(content)
    while len(view) > CHUNK_BYTES:
        yield kind(content=view[:CHUNK_BYTES].tobytes())
        view = view[CHUNK_BYTES:]
    yield kind(content=view.tobytes(), **fields)


class Joiner:
    """Joins content that comes in several messages."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, content: bytes) -> None:
        """Take the content of a message.

        Raises
        ------
        TooLongError
            It is too long; what came before is forgotten.
        """
        self._length += len(content)
        if self._length > MOST_BYTES:
            length = self._length
            self.take()
            raise TooLongError(f"the content of an operation may have {MOST_BYTES} bytes, not {length}")
        self._parts.append(content)

    def take(self) -> bytes:
        """The content of all messages since the last call."""
        content = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._length = [], 0
        return content
