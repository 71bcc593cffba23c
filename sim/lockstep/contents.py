"""What lies in the memories of a random case: data, parameter sets whose outputs spread, and awkward numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.legality import PARAMETER_ROWS

__all__ = ["DATA_ROWS", "PARAMETER_BLOCKS", "host_contents", "random_parameters", "weight_contents"]

PARAMETER_BLOCKS = 6
"""Parameter sets, as LOAD_PARAMETERS wants them, at the beginning of host memory."""

DATA_ROWS = 96
"""Rows of random bytes behind them."""

_SPECIAL_SCALES = np.array(
    [0.0, -0.0, 1e-40, -1e-45, np.inf, -np.inf, np.nan, 3.4e38, 1.1754944e-38, 1.0, -1.0, 0.5, 1.5], np.float32
)
_SPECIAL_BIASES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 3, 2**25 + 2], np.int32)


def host_contents(config: Config, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Parameter sets and random bytes; sometimes the last row, and the last beat, are not whole."""
    blocks = [random_parameters(config, rng).reshape(-1) for _ in range(PARAMETER_BLOCKS)]
    tail = int(rng.integers(1, 2 * config.host_data_bytes)) if rng.random() < 0.3 else 0
    data = rng.integers(0, 256, DATA_ROWS * config.size + tail, np.uint8)
    return np.concatenate([*blocks, data])


def weight_contents(config: Config, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Random tiles, a few more than the weight FIFO holds; the memory may end within a beat."""
    tiles = config.weight_fifo_tiles + int(rng.integers(2, 8))
    tail = int(rng.integers(1, 2 * config.weight_data_bytes)) if rng.random() < 0.3 else 0
    return rng.integers(0, 256, tiles * config.tile_bytes + tail, np.uint8)


def random_parameters(config: Config, rng: np.random.Generator) -> NDArray[np.uint8]:
    """One parameter set as uint8 array of shape (8, S): biases and scales for the columns."""
    biases = _biases(config.size, rng).astype("<i4").view(np.uint8).reshape(config.size, 4)
    scales = _scales(config.size, rng).astype("<f4").view(np.uint8).reshape(config.size, 4)
    rows = np.concatenate([biases, scales], axis=1).T
    assert rows.shape == (PARAMETER_ROWS, config.size)
    return np.ascontiguousarray(rows)


def _biases(size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    match rng.choice(["small", "special", "any"], p=[0.75, 0.15, 0.1]):
        case "small":
            return rng.integers(-10000, 10000, size, np.int32)
        case "special":
            return rng.choice(_SPECIAL_BIASES, size)
        case _:
            return rng.integers(-(2**31), 2**31, size, np.int32)


def _scales(size: int, rng: np.random.Generator) -> NDArray[np.float32]:
    match rng.choice(["spread", "ties", "special", "any"], p=[0.7, 0.1, 0.12, 0.08]):
        case "spread":
            # A sum of S products of random bytes has a standard deviation of about 5500 · sqrt(S).
            typical = 60 / (5500 * np.sqrt(size))
            scales = typical * 10 ** rng.uniform(-1.2, 0.3, size) * rng.choice([1, 1, 1, -1], size)
            return scales.astype(np.float32)
        case "ties":
            return np.exp2(-rng.integers(0, 20, size)).astype(np.float32)
        case "special":
            return rng.choice(_SPECIAL_SCALES, size)
        case _:
            return rng.integers(0, 2**32, size, np.uint32).view(np.float32)
