"""The timeline of an execution: for each instruction, the cycles in which its unit worked on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from openmxu.program import Program
from openmxu.sim.cycle_model import predict
from openmxu.sim.memory_rate import Rate

__all__ = ["STALLS", "InstructionTimes", "Timeline", "joined_timeline", "predicted_timeline"]

STALLS = ("weight_stall", "weight_shift", "raw_stall", "input_stall")
"""What a multiplication waits for, named as the hardware's counters."""


class InstructionTimes(Protocol):
    """Arrays with an element for each instruction, as :class:`Timeline` has them."""

    @property
    def unit(self) -> NDArray[np.int64]: ...

    @property
    def accepted(self) -> NDArray[np.int64]: ...

    @property
    def begun(self) -> NDArray[np.int64]: ...

    @property
    def done(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class Timeline:
    """One execution of a program. All arrays have an element for each instruction, in the program's order.

    Attributes
    ----------
    source
        ``model`` for the cycle model, or the name of the device on which it was recorded.
    cycles
        Cycles from the first instruction to the last byte written, the value of the counter ``CYCLES``. Segments of
        the device follow each other without the time that the host takes between them.
    unit
        Number of the :class:`~openmxu.arch.isa.Unit` that executes it; -1 for the dispatcher.
    accepted
        The cycle in which the instruction is handed to its unit, or executed by the dispatcher.
    begun, done
        The cycle in which its unit begins with it, and the cycle in which it is finished.
    layer
        Number of its layer in ``program.layers``; -1 if it belongs to none.
    stalls
        For each name in :data:`STALLS` the cycles in which the matrix unit waited because of it.
    """

    source: str
    cycles: int
    unit: NDArray[np.int64]
    accepted: NDArray[np.int64]
    begun: NDArray[np.int64]
    done: NDArray[np.int64]
    layer: NDArray[np.int64]
    stalls: Mapping[str, NDArray[np.int64]]


def predicted_timeline(
    program: Program, *, memory_latency: int = 4, host_rate: Rate = None, weight_rate: Rate = None
) -> Timeline:
    """The timeline of one execution by the cycle model; parameters and errors as :func:`openmxu.report` has them."""
    memories: dict[str, Any] = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    predictions = (
        predict(program.instructions[segment.start : segment.stop], program.config, **memories)
        for segment in program.device_segments
    )
    return joined_timeline("model", program, ((found.cycles, found, vars(found.stalls)) for found in predictions))


def joined_timeline(
    source: str, program: Program, segments: Iterable[tuple[int, InstructionTimes, Mapping[str, NDArray[np.int64]]]]
) -> Timeline:
    """The timeline of segments that follow each other: for each its cycles, and times and stalls of its instructions.

    Times are counted from the segment's first instruction.
    """
    columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in ("unit", "accepted", "begun", "done", *STALLS)}
    cycles = 0
    for count, times, waits in segments:
        columns["unit"].append(times.unit)
        for name in ("accepted", "begun", "done"):
            columns[name].append(getattr(times, name) + cycles)
        for name in STALLS:
            columns[name].append(waits[name])
        cycles += count
    joined = {name: np.concatenate(parts or [np.zeros(0, np.int64)]) for name, parts in columns.items()}
    stalls = {name: joined.pop(name) for name in STALLS}
    return Timeline(source, cycles, layer=np.asarray(program.layer_numbers, np.int64), stalls=stalls, **joined)
