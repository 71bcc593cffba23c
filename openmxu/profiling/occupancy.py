"""Occupancy of the unified buffer: how many of its rows hold something that is still to be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.profiling.timeline import Timeline
from openmxu.program import Program
from openmxu.sim.cycle_model.words import Words
from openmxu.sim.cycle_model.work import Work

__all__ = ["Occupancy", "occupancy"]


@dataclass(frozen=True)
class Occupancy:
    """Rows of the unified buffer that are live, over time.

    A row is live from the cycle in which the instruction that writes it begins to the cycle in which the last
    instruction that reads it, before it is written again, is finished. A row that is read without having been written,
    a state of an earlier execution, is live from cycle 0.

    Attributes
    ----------
    cycle, rows
        From each of these cycles on, in ascending order, so many rows are live.
    available
        Rows of the unified buffer.
    """

    cycle: NDArray[np.int64]
    rows: NDArray[np.int64]
    available: int

    @property
    def peak(self) -> int:
        """Most rows that are live at any time."""
        return int(self.rows.max(initial=0))

    def at_most(self, points: int) -> Occupancy:
        """The same with at most so many points, each the most rows that are live until the next one."""
        if len(self.cycle) <= points:
            return self
        edges = np.linspace(0, len(self.cycle), points, endpoint=False).astype(np.int64)
        return Occupancy(self.cycle[edges], np.maximum.reduceat(self.rows, edges), self.available)


def occupancy(program: Program, timeline: Timeline) -> Occupancy:
    """The occupancy during one execution of a program, whose instructions are executed as a timeline says."""
    available = program.config.unified_buffer_rows
    since = np.full(available, -1, np.int64)  # the begin of the last write
    until = np.full(available, -1, np.int64)  # the end of the last read since then
    starts: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []

    def forget(rows: slice) -> None:
        was_read = until[rows] >= 0
        starts.append(since[rows][was_read].clip(0))
        ends.append(until[rows][was_read])

    for segment in program.device_segments:
        work = Work(Words(program.instructions[segment.start : segment.stop]), program.config)
        parts = (work.unified_buffer, work.source, work.operand)
        touched = [
            [(first, end) if used else None for first, end, used in zip(*columns, strict=True)]
            for columns in ((part.first.tolist(), part.end.tolist(), part.used.tolist()) for part in parts)
        ]
        own = slice(segment.start, segment.stop)
        steps = zip(
            work.writes.tolist(), timeline.begun[own].tolist(), timeline.done[own].tolist(), *touched, strict=True
        )
        for writes, begun, done, buffer, source, operand in steps:
            for read in (source, operand, None if writes else buffer):
                if read is not None:
                    rows = slice(*read)
                    np.maximum(until[rows], done, out=until[rows])
            if writes and buffer is not None:
                rows = slice(*buffer)
                forget(rows)
                since[rows], until[rows] = begun, -1
    forget(slice(0, available))
    return _counted(np.concatenate(starts), np.concatenate(ends), available)


def _counted(starts: NDArray[np.int64], ends: NDArray[np.int64], available: int) -> Occupancy:
    """The number of intervals, from a start up to its end, over time."""
    changes = np.concatenate([np.ones(len(starts), np.int64), np.full(len(ends), -1, np.int64)])
    cycles, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    sums = np.zeros(len(cycles), np.int64)
    np.add.at(sums, place, changes)
    return Occupancy(cycles, np.cumsum(sums), available)
