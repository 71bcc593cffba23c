"""Memories of limited bandwidth: from bytes per cycle to the time of a beat."""

from __future__ import annotations

from fractions import Fraction
from numbers import Rational

from openmxu.arch.config import Config

__all__ = ["Rate", "beat_time", "beat_times"]

Rate = Fraction | int | None
"""Bytes per cycle that a memory transfers at most in each direction; ``None`` for a beat in every cycle."""

_PRECISION = 1 << 32
"""More than numerator and denominator of a beat time, so that simulation and prediction count in 64 bits."""


def beat_time(name: str, rate: Rate, beat_bytes: int) -> Fraction:
    """Cycles from beat to beat of a port, at least 1: a rate above the width of the port is no limit.

    Parameters
    ----------
    name
        The name of the rate, for errors.
    rate
        Bytes per cycle.
    beat_bytes
        Width of the port.

    Raises
    ------
    TypeError
        The rate is no rational number; a float is not one, because its denominator would be an accident.
    ValueError
        The rate is not positive, or its numerator or denominator is too large.
    """
    if rate is None:
        return Fraction(1)
    if not isinstance(rate, Rational) or isinstance(rate, bool):
        raise TypeError(f"{name} must be an int or a Fraction, not {rate!r}")
    if rate <= 0:
        raise ValueError(f"{name} must be positive, not {rate}")
    time = max(Fraction(beat_bytes) / Fraction(rate), Fraction(1))
    if max(time.numerator, time.denominator) >= _PRECISION:
        raise ValueError(f"{name} must be a fraction of smaller numbers, not {rate}")
    return time


def beat_times(config: Config, host_rate: Rate, weight_rate: Rate) -> tuple[Fraction, Fraction]:
    """:func:`beat_time` of the ports of host memory and of weight memory."""
    return (
        beat_time("host_rate", host_rate, config.host_data_bytes),
        beat_time("weight_rate", weight_rate, config.weight_data_bytes),
    )
