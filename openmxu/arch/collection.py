"""Python's cyclic garbage collector, paused while a program or hardware is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused_collection"]


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect no cycles meanwhile.

    A large program, or an elaborated design, is millions of objects that stay. The collector would walk them again and
    again while they are made, a quarter of the time of a compilation and half of that of an elaboration.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
