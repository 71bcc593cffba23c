"""The environment of a device that runs a case: stalls of its streams, and latency of its memories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["LATENCIES", "LONG_BURST", "STALL_KINDS", "STREAMS", "Environment", "environment"]

STREAMS = (
    "INSTRUCTIONS",
    "HOST_READ_REQUEST",
    "HOST_READ_DATA",
    "HOST_WRITE_REQUEST",
    "HOST_WRITE_DATA",
    "HOST_WRITE_DONE",
    "WEIGHTS_REQUEST",
    "WEIGHTS_DATA",
    "EVENTS",
)
"""Core streams used while a program runs, by their names in :class:`openmxu.sim.verilator.library.Port`."""

STALL_KINDS = ("none", "10 %", "30 %", "70 %", "bursts", "one stream")
"""Kinds of stalls: all streams stall in each cycle with some probability; all of them stall in long bursts; one of them
stalls most of the time."""

LONG_BURST = 200
"""Mean length in cycles of the longest stalls."""

LATENCIES = (1, 4, 30)
"""Cycles between a request and its first beat."""


@dataclass(frozen=True)
class Environment:
    """Parameters of a :class:`~openmxu.sim.verilated.VerilatedDevice`.

    Attributes
    ----------
    stalls
        One of ``STALL_KINDS``.
    probability, cycles
        Share of the time that streams stall, and number of consecutive cycles.
    streams
        Which of ``STREAMS`` stall.
    latency
        Latency of the memories, in cycles.
    """

    stalls: str
    probability: float = 0.0
    cycles: int = 1
    streams: tuple[str, ...] = STREAMS
    latency: int = 4


def environment(seed: int) -> Environment:
    """The environment of the case with this seed."""
    rng = np.random.default_rng((seed, 1))
    latency = int(rng.choice(LATENCIES))
    kind = str(rng.choice(STALL_KINDS, p=[0.16, 0.15, 0.2, 0.15, 0.17, 0.17]))
    match kind:
        case "none":
            return Environment(kind, latency=latency)
        case "bursts":
            return Environment(kind, 0.5, int(rng.choice([8, 40, LONG_BURST])), latency=latency)
        case "one stream":
            return Environment(kind, 0.9, int(rng.choice([1, 20])), (str(rng.choice(STREAMS)),), latency)
        case _:
            return Environment(kind, int(kind.removesuffix(" %")) / 100, latency=latency)
