"""The machine that a program is planned for: a core, and how fast the memories at its ports are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from openmxu.arch.config import Config
from openmxu.sim.memory_rate import Rate, beat_times

__all__ = ["Target"]


@dataclass(frozen=True, kw_only=True)
class Target(Config):
    """A core and the rates of its memories.

    The rates change the plan only. The program runs on the core with any memories, and computes the same integers.

    Parameters
    ----------
    host_rate, weight_rate
        Bytes per cycle, an ``int`` or a ``Fraction``, that host memory transfers in each direction, and weight memory
        delivers; by default, and at most, a beat in every cycle.

    Raises
    ------
    TypeError
        A rate is neither an ``int`` nor a ``Fraction``.
    ValueError
        A rate is not positive.
    """

    host_rate: Rate = None
    weight_rate: Rate = None

    def __post_init__(self) -> None:
        super().__post_init__()
        beat_times(self, self.host_rate, self.weight_rate)

    @classmethod
    def of(cls, config: Config, host_rate: Rate = None, weight_rate: Rate = None) -> Target:
        """A core with memories of these rates."""
        parameters: dict[str, Any] = config.as_dict()
        return cls(**parameters, host_rate=host_rate, weight_rate=weight_rate)

    @property
    def config(self) -> Config:
        """The core alone."""
        parameters: dict[str, Any] = self.as_dict()
        return Config(**parameters)

    @cached_property
    def row_cycles(self) -> int:
        """Cycles in which a row goes to or from host memory, rounded up."""
        host, _ = beat_times(self, self.host_rate, self.weight_rate)
        return _cycles(self.size, self.host_data_bytes, host)

    @cached_property
    def fetch_cycles(self) -> int:
        """Cycles in which weight memory delivers a tile, rounded up."""
        _, weights = beat_times(self, self.host_rate, self.weight_rate)
        return _cycles(self.tile_bytes, self.weight_data_bytes, weights)


def _cycles(length: int, beat_bytes: int, beat: Fraction) -> int:
    return math.ceil(-(-length // beat_bytes) * beat)
