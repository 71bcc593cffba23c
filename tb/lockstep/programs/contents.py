"""Contents of the memories of a random case: data, tables, parameter sets that spread the outputs, and special numbers.

Host memory begins with parameter sets in the format of LOAD_PARAMETERS; tables in the format of LOAD_TABLE and random
bytes follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, TABLE_BYTES

__all__ = [
    "DATA_ROWS",
    "HOST_TABLES",
    "PARAMETER_KINDS",
    "data_address",
    "host_contents",
    "parameter_address",
    "random_parameters",
    "table_address",
    "weight_contents",
]

HOST_TABLES = 2
"""Number of tables in host memory."""

DATA_ROWS = 96
"""Number of rows of random bytes in host memory."""

PARAMETER_KINDS = ("sums", "bytes", "words", "products", "any of them", "special")
"""Inputs for which the scales of each set are suitable: sums of products of bytes, bytes, 16-bit words, sums of
products with 16-bit operands; or a random one of these in each column; or special numbers."""

_TYPICAL_SCALES = {"sums": 60 / 5500, "bytes": 0.6, "words": 2.0**-8, "products": 60 / 5500 / 256}
"""A sum of S products of random bytes has a standard deviation of about 5500 · sqrt(S)."""

_SPECIAL_SCALES = np.array(
    [0.0, -0.0, 1e-40, -1e-45, np.inf, -np.inf, np.nan, 3.4e38, 1.1754944e-38, 1.0, -1.0, 0.5, 1.5], np.float32
)
_SPECIAL_BIASES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 3, 2**25 + 2], np.int32)


def parameter_address(config: Config, kind: int) -> int:
    """Address of the parameter set with this index in ``PARAMETER_KINDS``."""
    return kind * PARAMETER_ROWS * config.size


def table_address(config: Config, table: int) -> int:
    """Address of a table in host memory; that of table ``HOST_TABLES`` is the end of the last one."""
    return parameter_address(config, len(PARAMETER_KINDS)) + table * TABLE_BYTES


def data_address(config: Config) -> int:
    """Address of the random bytes in host memory."""
    return table_address(config, HOST_TABLES)


def host_contents(config: Config, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Parameter sets, tables and random bytes; sometimes with an incomplete row and an incomplete beat at the end."""
    blocks = [random_parameters(config, kind, rng).reshape(-1) for kind in PARAMETER_KINDS]
    tables = [rng.permutation(TABLE_BYTES).astype(np.uint8) for _ in range(HOST_TABLES)]
    tail = int(rng.integers(1, 2 * config.host_data_bytes)) if rng.random() < 0.3 else 0
    data = rng.integers(0, 256, DATA_ROWS * config.size + tail, np.uint8)
    return np.concatenate([*blocks, *tables, data])


def weight_contents(config: Config, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Random tiles, a few more than the weight FIFO holds; sometimes with an incomplete beat at the end."""
    tiles = config.weight_fifo_tiles + int(rng.integers(2, 8))
    tail = int(rng.integers(1, 2 * config.weight_data_bytes)) if rng.random() < 0.3 else 0
    return rng.integers(0, 256, tiles * config.tile_bytes + tail, np.uint8)


def random_parameters(config: Config, kind: str, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A parameter set as a uint8 array of shape (8, S): biases and scales of the columns."""
    biases = _biases(config.size, kind, rng).astype("<i4").view(np.uint8).reshape(config.size, 4)
    scales = _scales(config.size, kind, rng).astype("<f4").view(np.uint8).reshape(config.size, 4)
    rows = np.concatenate([biases, scales], axis=1).T
    assert rows.shape == (PARAMETER_ROWS, config.size)
    return np.ascontiguousarray(rows)


def _biases(size: int, kind: str, rng: np.random.Generator) -> NDArray[np.int32]:
    if kind == "special":
        return (
            rng.choice(_SPECIAL_BIASES, size) if rng.random() < 0.6 else rng.integers(-(2**31), 2**31, size, np.int32)
        )
    largest = int(min(30 / _TYPICAL_SCALES.get(kind, 0.1), 10000))
    return rng.integers(-largest, largest, size).astype(np.int32)


def _scales(size: int, kind: str, rng: np.random.Generator) -> NDArray[np.float32]:
    typical = np.array(list(_TYPICAL_SCALES.values())) / [np.sqrt(size), 1, 1, np.sqrt(size)]
    match kind:
        case "special":
            if rng.random() < 0.6:
                return rng.choice(_SPECIAL_SCALES, size)
            return rng.integers(0, 2**32, size, np.uint32).view(np.float32)
        case "any of them":
            places = rng.integers(len(typical), size=size)
        case _:
            places = np.full(size, list(_TYPICAL_SCALES).index(kind))
    if rng.random() < 0.15:
        return np.exp2(np.round(np.log2(typical[places]))).astype(np.float32)  # ties
    scales = typical[places] * 10 ** rng.uniform(-1, 0.3, size) * rng.choice([1, 1, 1, -1], size)
    return scales.astype(np.float32)
