"""Every entry of every table, looked up in every column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLE_BYTES, TABLES, table_rows
from openmxu.arch.isa import Instruction, Register, format_named
from tb.directed.extreme_cases import plain_memories
from tb.directed.instructions import set_register
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["tables"]


def tables(config: Config, seed: int) -> Case:
    """Parameters are loaded between the tables and their use: both loads pass the same registers."""
    rng = np.random.default_rng(seed)
    setup, plain, weights = plain_memories(config, rng)
    entries = rng.integers(0, 256, (TABLES, TABLE_BYTES), np.uint8)
    indexes = np.stack([rng.permutation(TABLE_BYTES) for _ in range(config.size)], axis=1).astype(np.uint8)
    program = [*_loads(config, plain.size), *setup, *_lookups(config, plain.size + entries.size)]
    host = np.concatenate([plain, entries.reshape(-1), indexes.reshape(-1)])
    return Case(config, tuple(program), host, weights, seed, separate=True)


def _loads(config: Config, host: int) -> Iterator[Instruction]:
    for number in range(TABLES):
        yield format_named("read_host_memory")(rows=table_rows(config.size), host=host + number * TABLE_BYTES)
        yield set_register(Register.LOAD_TABLE, number=number)
    yield HALT


def _lookups(config: Config, host: int) -> Iterator[Instruction]:
    """Of a part of the indexes at a time, in all tables."""
    read, activate = format_named("read_host_memory"), format_named("activate")
    rows = min(TABLE_BYTES, 1 << (config.unified_buffer_rows // 2).bit_length() - 1)
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    yield set_register(Register.SOURCE_FORMAT, signed=1)
    for first in range(0, TABLE_BYTES, rows):
        for number in range(TABLES):
            yield read(rows=rows, host=host + first * config.size)
            yield activate(rows=rows, unified_buffer=rows, from_unified_buffer=1, table=1, table_number=number)
            yield HALT
