"""Random ranges of a memory, biased towards errors of hardware that overlaps instructions."""

from __future__ import annotations

from collections import deque

import numpy as np

__all__ = ["Ranges"]

_REMEMBERED = 6


class Ranges:
    """Ranges of a memory: equal to, adjacent to or overlapping recent ones, at both ends, or near a few fixed places.

    Parameters
    ----------
    places
        Number of rows or bytes in the memory.
    rng
        Generator for the choices.
    """

    def __init__(self, places: int, rng: np.random.Generator) -> None:
        self.places = places
        self._rng = rng
        self._hot = rng.integers(0, places, 2)
        self._recent: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)

    def choose(self, count: int, alignment: int = 1) -> int:
        """Draw a range of ``count`` places and remember it; returns its first place, a multiple of ``alignment``."""
        first = self.draw(count, alignment)
        self.remember(first, count)
        return first

    def draw(self, count: int, alignment: int = 1) -> int:
        """Like :meth:`choose`, but without remembering the range."""
        rng = self._rng
        last = self.places - count
        jitter = int(rng.integers(-3, 4)) * alignment
        kind = rng.random()
        if kind < 0.55 and self._recent:
            near, length = self._recent[rng.integers(len(self._recent))]
            first = near + int(rng.choice([0, 0, jitter, length, length - alignment, alignment - count, -count]))
        elif kind < 0.7:
            first = abs(jitter)
        elif kind < 0.85:
            first = last - max(0, jitter)
        else:
            first = int(rng.choice(self._hot)) + jitter
        return min(max(first, 0), last) // alignment * alignment

    def remember(self, first: int, count: int) -> None:
        """Add a range to the recent ones."""
        self._recent.append((first, count))
