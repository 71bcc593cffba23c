"""The timeline of an execution: for each instruction, the cycles in which its unit worked on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import UNITS, Unit
from openmxu.program import Program
from openmxu.reporting import predictions
from openmxu.sim.cycle_model import Prediction, check_predicted
from openmxu.sim.memory_rate import Rate

__all__ = [
    "STALLS",
    "InstructionTimes",
    "Lane",
    "Timeline",
    "Wait",
    "drawn_slices",
    "drawn_waits",
    "joined_timeline",
    "predicted_timeline",
    "timeline_of",
]

STALLS = ("weight_stall", "weight_shift", "raw_stall", "input_stall")
"""What a multiplication waits for, named as the hardware's counters."""

_ORDER = ("raw_stall", "input_stall", "weight_stall", "weight_shift")
"""The same in the order in which the matrix unit waits before the first row of a multiplication."""


class Lane(IntEnum):
    """Where instructions are drawn: those of a lane are never in their unit together, but for what drains from it."""

    DISPATCHER = 0
    HOST_READ = 1 + Unit.HOST_READ
    HOST_WRITE = 1 + Unit.HOST_WRITE
    WEIGHT = 1 + Unit.WEIGHT
    MATRIX = 1 + Unit.MATRIX
    ACTIVATION = 1 + Unit.ACTIVATION
    # The activation unit fetches parameters and tables while it works on instructions that came before them.
    LOAD = 1 + len(UNITS)


class Wait(NamedTuple):
    """Why a multiplication waits, and where that is drawn."""

    number: int  #: of the multiplication in the program
    reason: str  #: one of :data:`STALLS`
    begin: int
    end: int


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
    """The timeline of one execution by the cycle model; parameters as :func:`openmxu.report` has them.

    Raises
    ------
    openmxu.sim.cycle_model.UnpredictedError
        The cycle model does not know the core.
    TypeError, ValueError
        As of :func:`openmxu.report`.
    """
    check_predicted(program.config)
    memories: dict[str, Any] = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    return timeline_of(program, predictions(program, **memories))


def timeline_of(program: Program, predicted: Iterable[Prediction]) -> Timeline:
    """The timeline of :func:`openmxu.reporting.predictions`."""
    return joined_timeline("model", program, ((found.cycles, found, vars(found.stalls)) for found in predicted))


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


def drawn_slices(
    program: Program, timeline: Timeline
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The :class:`Lane`, begin and end of each instruction's slice, in the program's order.

    Slices of a lane do not overlap: a slice ends where the next one of its lane begins, if its instruction is not
    finished by then. A slice of the dispatcher is the time that dispatch spends on an instruction that needs no unit.
    """
    loads = np.array([instruction.name == "Set_Configuration" for instruction in program.instructions], bool)
    lanes = np.where(loads & (timeline.unit == Unit.ACTIVATION), Lane.LOAD, 1 + timeline.unit)
    begins, ends = timeline.begun.copy(), timeline.done.copy()
    # Dispatch takes an instruction when it has handed over the one before it.
    own = np.flatnonzero(lanes == Lane.DISPATCHER)
    begins[own] = np.append(0, timeline.accepted)[own]
    ends[own] = timeline.accepted[own]
    for lane in Lane:
        numbers = np.flatnonzero(lanes == lane)
        ends[numbers[:-1]] = np.minimum(ends[numbers[:-1]], begins[numbers[1:]])
    return lanes, begins, np.maximum(begins, ends)


def drawn_waits(timeline: Timeline) -> Iterator[Wait]:
    """A slice for each reason for which a multiplication waits, before its first row.

    They do not overlap either: a cycle may count for two reasons, and a second pass of one multiplication waits later,
    so that a slice can be shorter than the cycles in ``timeline.stalls``.
    """
    free = 0
    for number in np.flatnonzero(timeline.unit == Unit.MATRIX).tolist():
        end = int(timeline.begun[number])
        begin = end - sum(int(timeline.stalls[name][number]) for name in _ORDER)
        for name in _ORDER:
            count = int(timeline.stalls[name][number])
            if count:
                yield Wait(number, name, max(free, begin), max(free, begin + count))
            begin += count
        free = max(free, end)
