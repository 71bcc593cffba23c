"""The base class of all exceptions of the project."""

from __future__ import annotations

__all__ = ["OpenmxuError"]


class OpenmxuError(Exception):
    """A model, an input, a file or a device is not as it must be; the message says what is wrong.

    Every exception class of openmxu is derived from it, some of them from ``ValueError`` or ``RuntimeError`` as well.
    Arguments of the wrong type or outside their range raise Python's own ``TypeError`` and ``ValueError``.
    """
