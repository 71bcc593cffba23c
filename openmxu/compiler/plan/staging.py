"""How long rows, weights and parameter sets take to come, and where parameter sets wait to be loaded."""

from __future__ import annotations

from collections.abc import Sequence

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.compiler.target import Target

__all__ = ["fetch_cycles", "load_cycles", "plan_staging", "row_cycles", "table_cycles"]

_LOADS = 8
"""Parameter sets that one load brings."""

_LOAD_CYCLES = 5
"""Cycles from one row that the activation unit loads to the next one, where writing does not take longer."""


def row_cycles(config: Config) -> int:
    """Cycles in which a row goes to or from host memory."""
    return _as_target(config).row_cycles


def _as_target(config: Config) -> Target:
    """The core with its memories' rates; a core alone has a beat in every cycle."""
    return config if isinstance(config, Target) else Target.of(config)


def load_cycles(config: Config, sets: int) -> int:
    """Cycles in which the activation unit loads parameter sets."""
    return sets * PARAMETER_ROWS * max(_LOAD_CYCLES, config.column_groups + 1)


def table_cycles(config: Config) -> int:
    """Cycles in which it loads a table, four bytes at a time."""
    return table_rows(config.size) * max(_LOAD_CYCLES, -(-config.size // 4) + 1)


def fetch_cycles(config: Config) -> int:
    """Cycles in which the weight memory delivers one tile."""
    return _as_target(config).fetch_cycles


def plan_staging(layers: Sequence[int], config: Config) -> tuple[int, int]:
    """Parameter sets of one load and the number of loads in the unified buffer at a time.

    Two loads take at most an eighth of it. More of them, so that inputs need not wait behind parameters that have no
    room yet, take at most a part in 64.

    Parameters
    ----------
    layers
        Parameter sets of each layer; a load brings those of one.
    """
    tiles = sum(layers)
    room = config.unified_buffer_rows // 8 // PARAMETER_ROWS
    sets = max(1, min(tiles, _LOADS, room // 2, config.parameter_sets // 2))
    few = 2 if room >= 2 * sets and tiles > sets else 1
    return sets, max(few, min(sum(-(-count // sets) for count in layers), room // 8 // sets))
