"""What the activation unit does behind a convolution, while the array still works on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.emit.tasks import Rows

__all__ = ["Chunk", "DeferredActivations", "Touch"]


@dataclass(frozen=True)
class Touch:
    """The unified buffer rows that some tasks read and write."""

    reads: tuple[Rows, ...]
    writes: tuple[Rows, ...]


@dataclass(frozen=True)
class Chunk:
    """A part of what an operation of the activation unit alone makes: the rows it touches, and what adds its tasks."""

    touch: Touch
    emit: Callable[[], None]


class DeferredActivations:
    """Chunks that come behind the bands of a convolution, emitted between them as soon as nothing is in the way.

    Otherwise the activation unit would do all of them at the end, and the array would wait for it.

    Parameters
    ----------
    chunks
        In their order.
    rows
        Of the unified buffer.
    """

    def __init__(self, chunks: Iterable[Chunk], rows: int) -> None:
        self._waiting = list(chunks)
        self._rows = rows

    def advance(self, ahead: Sequence[Touch]) -> None:
        """Emit the chunks that may come before what is still ``ahead`` of them, bands and other chunks."""
        if not self._waiting:
            return
        read, written = np.zeros(self._rows, np.bool_), np.zeros(self._rows, np.bool_)
        for touch in ahead:
            _mark(touch, read, written)
        waiting, self._waiting = self._waiting, []
        for chunk in waiting:
            reads, writes = chunk.touch.reads, chunk.touch.writes
            if _any(written, reads) or _any(written, writes) or _any(read, writes):
                _mark(chunk.touch, read, written)
                self._waiting.append(chunk)
            else:
                chunk.emit()


def _mark(touch: Touch, read: NDArray[np.bool_], written: NDArray[np.bool_]) -> None:
    for marks, places in ((read, touch.reads), (written, touch.writes)):
        for rows in places:
            marks[rows.slice] = True


def _any(marks: NDArray[np.bool_], places: Sequence[Rows]) -> bool:
    return any(marks[rows.slice].any() for rows in places)
