"""What Jouppi et al., "In-Datacenter Performance Analysis of a Tensor Processing Unit" (ISCA 2017), say of the
workloads: Table 1 and Table 3, and the rates of Table 2 and Section 2."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

__all__ = ["CLOCK", "HOST_RATE", "ROWS", "TABLE_1", "TABLE_3", "WEIGHT_RATE"]

CLOCK = 700_000_000
"""Cycles per second."""

WEIGHT_RATE, HOST_RATE = Fraction(34_000_000_000, CLOCK), Fraction(14_000_000_000, CLOCK)
"""Bytes per cycle: 34 GB/s from weight memory, 14 GB/s to and from the host, each way."""

TABLE_1: Mapping[str, tuple[Mapping[str, int], int, int, int]] = {
    "MLP0": ({"dense": 5}, 20, 200, 200),
    "MLP1": ({"dense": 4}, 5, 168, 168),
    "LSTM0": ({"dense": 24, "vector": 34}, 52, 64, 64),
    "LSTM1": ({"dense": 37, "vector": 19}, 34, 96, 96),
    "CNN0": ({"convolution": 16}, 8, 2888, 8),
    "CNN1": ({"dense": 4, "convolution": 72, "pooling": 13}, 100, 1750, 32),
}
"""Layers of each kind, millions of weights, multiply-adds for each weight byte, batch."""

ROWS = (
    "array active",
    "useful MACs",
    "unused MACs",
    "weight stall",
    "weight shift",
    "non-matrix",
    "RAW stalls",
    "input data stalls",
    "TeraOps/s",
)

TABLE_3: Mapping[str, tuple[float, ...]] = {
    "MLP0": (12.7, 12.5, 0.3, 53.9, 15.9, 17.5, 3.3, 6.1, 12.3),
    "MLP1": (10.6, 9.4, 1.2, 44.2, 13.4, 31.9, 8.4, 8.8, 9.7),
    "LSTM0": (8.2, 8.2, 0.0, 58.1, 15.8, 17.9, 14.6, 5.1, 3.7),
    "LSTM1": (10.5, 6.3, 4.2, 62.1, 17.1, 10.3, 10.6, 2.4, 2.8),
    "CNN0": (78.2, 78.2, 0.0, 0.0, 0.0, 21.8, 3.5, 3.4, 86.0),
    "CNN1": (46.2, 22.5, 23.7, 28.1, 7.0, 18.7, 22.8, 0.6, 14.1),
}
"""Percent of all cycles, and 10**12 operations per second: the rows of :data:`ROWS`."""
