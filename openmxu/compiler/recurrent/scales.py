"""The scales within a recurrent cell: what a node's metadata may say, and what holds otherwise."""

from __future__ import annotations

__all__ = ["DEFAULTS", "METADATA"]

METADATA = "openmxu."
"""Begins the keys of a node's metadata; the names below follow it, as in ``openmxu.cell``."""

_TABLES = {"sigmoid": 6.5 / 127, "tanh": 3.25 / 127}
"""Tables reach ±6.5 and ±3.25: the functions are within half a step of their limits there."""

DEFAULTS = {
    "LSTM": {"hidden": 1 / 127, "cell": 16 / 32768, **_TABLES},
    "GRU": {"hidden": 1 / 127, **_TABLES},
}
"""By operator: of the int8 hidden state, the int16 cell state, and the tables' int8 inputs."""
