"""The order in which clients get a device."""

from __future__ import annotations

import threading
from dataclasses import dataclass

__all__ = ["Place", "Turn", "Turns"]


@dataclass(eq=False)
class Turn:
    """A client in the queue, or the one that has the device.

    Attributes
    ----------
    name
        The client, for people.
    has_begun
        Whether it has had the device; it leaves the queue only when it has given the device back.
    """

    name: str
    has_begun: bool = False


@dataclass(frozen=True)
class Place:
    """The place of a client in the queue.

    Attributes
    ----------
    before
        Number of clients that come first.
    holder
        Name of the client that has the device.
    """

    before: int
    holder: str


class Turns:
    """A queue of clients; the first one has the device. All methods may be called by any thread."""

    def __init__(self) -> None:
        self._queue: list[Turn] = []
        self._changed = threading.Condition()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._queue)

    def join(self, name: str) -> Turn:
        """Put a client at the end."""
        turn = Turn(name)
        with self._changed:
            self._queue.append(turn)
        return turn

    def await_change(self, turn: Turn, known: Place | None, timeout: float) -> Place | None:
        """Wait until the place of a client is another one than ``known``, the queue is closed, or time is over.

        Returns
        -------
        Its place; ``None`` if it is not in the queue any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._place(turn) != known, timeout)
            return self._place(turn)

    def begin(self, turn: Turn) -> bool:
        """Give a client the device, unless another one has it or the client has left."""
        with self._changed:
            turn.has_begun = not self._is_closed and bool(self._queue) and self._queue[0] is turn
            return turn.has_begun

    def give_up(self, turn: Turn) -> None:
        """Take a client that has not had the device out of the queue."""
        with self._changed:
            if not turn.has_begun:
                self._remove(turn)

    def end(self, turn: Turn) -> None:
        """Take the device back from a client."""
        with self._changed:
            self._remove(turn)

    def close(self) -> None:
        """Wake all that wait; none of them gets the device."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` has been called."""
        return self._is_closed

    def _place(self, turn: Turn) -> Place | None:
        if turn not in self._queue:
            return None
        return Place(self._queue.index(turn), self._queue[0].name)

    def _remove(self, turn: Turn) -> None:
        if turn in self._queue:
            self._queue.remove(turn)
            self._changed.notify_all()
