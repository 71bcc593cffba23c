"""Which older instructions each instruction has to wait for, by the rules of :mod:`openmxu.rtl.dispatch.scoreboard`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import UNITS, Unit
from openmxu.sim.cycle_model.work import Work

__all__ = ["conflicts"]

_HOST = (Unit.HOST_READ, Unit.HOST_WRITE)


def conflicts(work: Work) -> list[list[int]]:
    """For each instruction those older ones that touch the same rows or bytes, if one of the two writes them.

    Only instructions that may be in flight together count: as many of each unit as its queue is deep.
    """
    found: list[list[int]] = [[] for _ in range(len(work.words))]
    everything = np.flatnonzero((work.unit >= 0) & (work.unit != Unit.WEIGHT))
    for unit in UNITS:
        if unit is Unit.WEIGHT:
            continue
        theirs = np.flatnonzero(work.unit == unit)
        before = np.searchsorted(theirs, everything)
        for distance in range(1, work.config.command_queue_depth + 1):
            place = before - distance
            new, held = everything[place >= 0], theirs[place[place >= 0]]
            waits = _conflict(work, unit, new, held)
            for index, other in zip(new[waits].tolist(), held[waits].tolist(), strict=True):
                found[index].append(other)
    return found


def _conflict(work: Work, unit: Unit, new: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether instructions ``new`` have to wait for ``held``, which are for ``unit``."""
    buffer = work.unified_buffer
    overlap = buffer.meets(new, buffer, held)
    reads_written = np.zeros(len(new), np.bool_)
    if unit in (Unit.HOST_READ, Unit.ACTIVATION):
        for read in (work.source, work.operand):
            reads_written |= read.meets(new, buffer, held) & work.writes[held]
    is_own = work.unit[new] == unit
    meets = (work.writes[new] | work.writes[held]) & overlap
    if unit in (Unit.MATRIX, Unit.ACTIVATION):
        meets |= work.accumulators.meets(new, work.accumulators, held)
    if unit in _HOST:
        meets |= work.host.meets(new, work.host, held)
    if unit is Unit.ACTIVATION:
        for read in (work.source, work.operand):
            meets |= work.writes[new] & buffer.meets(new, read, held)
        # The activation unit reads ahead of what it writes itself.
        loads_written = work.writes[held] & ~work.writes[new] & overlap
        return np.where(is_own, reads_written | loads_written, meets | reads_written)
    return ~is_own & (meets | reads_written)
