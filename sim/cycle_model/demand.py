"""The demand of each instruction on the parts of the core: cycles, bytes, rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Unit
from openmxu.rtl.activation.table_memory import table_word_bytes
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.sim.cycle_model.latencies import Memories
from openmxu.sim.cycle_model.work import Work

__all__ = ["Demand", "load_cycles", "pass_cycles"]

_Array = NDArray[np.int64]


def pass_cycles(work: Work) -> _Array:
    """Cycles of the passes of an Activate, if nothing delays them."""
    groups = work.config.column_groups
    source, operand = (1 + work.source_wide).clip(groups), (1 + work.operand_wide).clip(groups)
    return work.rows * work.result_bytes * (work.positions * source + work.has_operand * operand)


def load_cycles(work: Work) -> tuple[_Array, _Array]:
    """Cycles of a load from one request for a row to the next one, and from the last one to the last write.

    A row is written part by part. The next one is requested when it comes or, if writing takes longer than a row's way
    through the unified buffer, so late that it comes behind the last part; the request passes a register first.
    """
    config = work.config
    parts = np.where(work.loads_table, config.size // table_word_bytes(config), config.column_groups)
    way = 1 + UnifiedBuffer.read_latency
    return np.where(parts > way, parts + 1, way), way + 1 + parts


@dataclass(frozen=True)
class Demand:
    """Arrays with an element for each instruction.

    Attributes
    ----------
    array, weights, weight_rows, host_read, host_write, activation, dispatch
        Cycles for which it occupies the array, the weight memory, the way of rows into the weight FIFO, the two
        directions of the host port, the activation unit and the dispatcher, if nothing delays it. Of a memory whose
        beats take no whole number of cycles each instruction has its share, rounded so that the shares add up. A tile
        of weights counts for the instruction that takes it.
    host_read_bytes, host_write_bytes, weight_bytes
        Bytes of the beats that it needs on the ports.
    unified_buffer_rows
        One more than the last unified buffer row that it touches.
    """

    array: _Array
    weights: _Array
    weight_rows: _Array
    host_read: _Array
    host_write: _Array
    activation: _Array
    dispatch: _Array
    host_read_bytes: _Array
    host_write_bytes: _Array
    weight_bytes: _Array
    unified_buffer_rows: _Array

    @classmethod
    def of(cls, work: Work, memories: Memories) -> Demand:
        """The demand of a program's instructions."""
        config = work.config
        passes = work.is_matrix * (1 + work.wide_input) * (1 + work.wide_weights)
        loaded = work.loaded_tiles
        fetched = work.is_matrix * work.tiles - loaded
        tile_beats = max(1, config.tile_bytes // config.weight_data_bytes)
        is_read, is_write = (work.unit == unit for unit in (Unit.HOST_READ, Unit.HOST_WRITE))
        beats = _beats(work)
        read, write = (
            is_this * np.maximum(work.rows, _cycles(is_this * beats, memories.host_beat))
            for is_this in (is_read, is_write)
        )
        row, last = load_cycles(work)
        activation = work.is_activate * pass_cycles(work) + work.is_load * ((work.load_rows - 1) * row + last)
        ranges = (work.unified_buffer, work.source, work.operand)
        return cls(
            array=passes * work.rows,
            weights=_cycles(fetched * tile_beats, memories.weight_beat),
            weight_rows=(fetched + loaded) * config.size,
            host_read=read,
            host_write=write,
            activation=activation,
            dispatch=work.check_cycles + 1,
            host_read_bytes=is_read * beats * config.host_data_bytes,
            host_write_bytes=is_write * beats * config.host_data_bytes,
            weight_bytes=fetched * max(config.tile_bytes, config.weight_data_bytes),
            unified_buffer_rows=np.maximum.reduce([touched.used * touched.end for touched in ranges]),
        )


def _cycles(beats: _Array, time: Fraction) -> _Array:
    """Cycles of each instruction's beats, one after the other's, from beat to beat ``time`` cycles."""
    return np.diff(np.cumsum(beats) * time.numerator // time.denominator, prepend=0)


def _beats(work: Work) -> _Array:
    """Beats of a transfer: one burst, or one burst for each row."""
    size, beat = work.config.size, work.config.host_data_bytes
    if size >= beat:
        return work.rows * (size // beat)
    lane = work.host.first % beat // size
    return np.where(work.is_alternate, work.rows, -(-(work.rows + lane) * size // beat))
