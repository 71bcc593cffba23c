"""The scales within a recurrent cell: what a node's metadata may say, and what holds otherwise."""

from __future__ import annotations

__all__ = ["DEFAULTS", "METADATA", "REACHES", "TABLE_STEPS"]

METADATA = "openmxu."
"""Begins the keys of a node's metadata; the names below follow it, as in ``openmxu.cell``."""

REACHES = {
    "LSTM": {"sigmoid": 6.5, "memory": 10.0, "tanh": 3.5},
    "GRU": {"sigmoid": 6.5, "memory": 10.0, "tanh": 3.25},
}
"""Inputs that a table needs to reach at most: behind them the function is within about half a step of its limit."""

TABLE_STEPS = {
    "LSTM": {"sigmoid": 127, "memory": 127, "tanh": 255},
    "GRU": {"sigmoid": 127, "memory": 127, "tanh": 127},
}
"""Steps from 0 to the end of a table, or of two that have one half each."""

DEFAULTS = {
    operator: {
        "hidden": 1 / 127,
        **({"cell": 16 / 32768} if operator == "LSTM" else {}),
        **{name: reach / TABLE_STEPS[operator][name] for name, reach in REACHES[operator].items()},
    }
    for operator in REACHES
}
"""By operator: of the int8 hidden state, the int16 cell state, and the tables' inputs."""
