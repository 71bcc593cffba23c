"""A pseudo-terminal: a serial port without hardware."""

from __future__ import annotations

import os
import tty

__all__ = ["PseudoTerminal"]


class PseudoTerminal:
    """A wire: what is written at one end is read at the other, byte for byte.

    Attributes
    ----------
    name
        Path at which the far end can be opened like a serial port, any number of times, until the wire is closed.
    near
        File descriptor of the near end; it does not block.
    """

    def __init__(self) -> None:
        self.near, self._far = os.openpty()
        tty.setraw(self._far)
        os.set_blocking(self.near, False)
        self.name = os.ttyname(self._far)

    def close(self) -> None:
        """Cut the wire: accesses to an opened far end then fail."""
        for descriptor in (self._far, self.near):
            os.close(descriptor)
