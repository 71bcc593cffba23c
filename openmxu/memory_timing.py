"""Latencies and rates of memories as users write them, in ranges that every device and the cycle model can count in."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["MOST_LATENCY", "RATE_RANGE", "read_rate"]

MOST_LATENCY = 10_000
"""Cycles from a request to the first beat of its data, at most: the watchdog takes five times as many for a hang."""

_LEAST_RATE, _MOST_RATE = Fraction(1, 1000), Fraction(1000)

RATE_RANGE = f"from {_LEAST_RATE} to {_MOST_RATE}, as 48.57 or 340/7, with at most six decimals"
"""The rates that :func:`read_rate` reads, for messages."""

_RATE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?|[0-9]{1,6}/[1-9][0-9]{0,5}")
"""Numbers whose beat times have numerators and denominators of less than 2**32. They have no exponents, with which a
short text may mean a fraction that is too large to be built."""


def read_rate(text: str) -> Fraction | None:
    """Bytes per cycle, as 20, 48.57 or 340/7; ``None`` if they are not in :data:`RATE_RANGE`."""
    if _RATE.fullmatch(text) is None:
        return None
    rate = Fraction(text)
    return rate if _LEAST_RATE <= rate <= _MOST_RATE else None
