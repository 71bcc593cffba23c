"""Runs a case on two devices and compares all results that a program can leave behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.events import Counter, Event
from openmxu.arch.isa import Instruction
from openmxu.device import DeviceError, DeviceFault, Snapshot
from tb.lockstep.case import Case
from tb.lockstep.counters import counter_problem, expected_work

__all__ = ["LockstepDevice", "Mismatch", "run_case"]

SHOWN_DIFFERENCES = 4

_COUNTED_TOGETHER = 8
"""Number of separate programs between two reads of the counters: reading them takes longer than such a program, and
an error persists in the counts."""


class LockstepDevice(Protocol):
    """A :class:`~openmxu.device.Device` with access to its memories."""

    def execute(
        self, program: Iterable[Instruction], host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]
    ) -> list[Event]:
        """Run a program; see :meth:`openmxu.device.Device.execute`."""

    def snapshot(self) -> Snapshot:
        """The current contents of unified buffer and accumulators."""

    @property
    def counters(self) -> Mapping[Counter, int]:
        """The counters; empty for a device without a clock."""

    def close(self) -> None:
        """Release the resources of the device."""


@dataclass(frozen=True)
class Mismatch:
    """The first difference between device and reference.

    Attributes
    ----------
    execution
        Number of the call of ``execute`` after which they differed; see :meth:`Case.executions`.
    what
        ``"outcome"``, ``"events"``, ``"unified buffer"``, ``"accumulators"``, ``"host memory"`` or ``"counters"``.
    details
        Positions and values that differ.
    """

    execution: int
    what: str
    details: str

    def __str__(self) -> str:
        return f"execution {self.execution}, {self.what}: {self.details}"


@dataclass(frozen=True)
class _Outcome:
    """Result of a call of ``execute``: ``error`` describes a fault or hang in one line, and is empty otherwise."""

    events: list[Event] | None
    error: str


def run_case(case: Case, device: LockstepDevice, reference: LockstepDevice) -> Mismatch | None:
    """Run ``case`` on both devices and compare after each call of ``execute``.

    Parameters
    ----------
    case
        Programs and memories.
    device, reference
        Two devices of the case's configuration in the same state, usually that after power-on.

    Returns
    -------
    The first difference in fault, events, unified buffer, accumulators or host memory; ``None`` if there is none. A
    device that hangs or raises another DeviceError also differs, and so does one with impossible counters; see
    :func:`tb.lockstep.counters.counter_problem`. Events before a fault are compared if the exceptions of both devices
    have an attribute ``events``.
    """
    memories = case.host_memory.copy(), case.host_memory.copy()
    weights = case.weight_memory.copy()
    counters_before = device.counters
    executions = case.executions()
    for number, (program, work) in enumerate(zip(executions, expected_work(case), strict=True)):
        got = _execute(device, program, memories[0], weights)
        expected = _execute(reference, program, memories[1], weights)
        if got.error != expected.error:
            return Mismatch(
                number, "outcome", f"device: {got.error or 'no fault'}; reference: {expected.error or 'no fault'}"
            )
        if None not in (got.events, expected.events) and got.events != expected.events:
            return Mismatch(number, "events", f"device: {got.events}; reference: {expected.events}")
        ours, theirs = device.snapshot(), reference.snapshot()
        for what, mine, other in (
            ("unified buffer", ours.unified_buffer, theirs.unified_buffer),
            ("accumulators", ours.accumulators, theirs.accumulators),
            ("host memory", *memories),
        ):
            if not np.array_equal(mine, other):
                return Mismatch(number, what, _difference(mine, other))
        left = len(executions) - 1 - number
        if case.separate and left % _COUNTED_TOGETHER:
            continue
        if counters := device.counters:
            counted = {counter: counters[counter] - counters_before[counter] for counter in counters}
            if problem := counter_problem(counted, work):
                return Mismatch(number, "counters", problem)
    return None


def _execute(
    device: LockstepDevice,
    program: tuple[Instruction, ...],
    host_memory: NDArray[np.uint8],
    weight_memory: NDArray[np.uint8],
) -> _Outcome:
    try:
        return _Outcome(device.execute(program, host_memory, weight_memory), "")
    except DeviceFault as fault:
        return _Outcome(getattr(fault, "events", None), f"{fault.code.name} at instruction {fault.index}")
    except DeviceError as error:
        return _Outcome(None, f"{type(error).__name__}: {error}")


def _difference(mine: NDArray[Any], other: NDArray[Any]) -> str:
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return f"device: {mine.dtype} of shape {mine.shape}; reference: {other.dtype} of shape {other.shape}"
    places = np.argwhere(mine != other)
    where = "address" if mine.ndim == 1 else "row, column"
    shown = "; ".join(
        f"{where} {', '.join(map(str, place))}: {mine[tuple(place)]} instead of {other[tuple(place)]}"
        for place in places[:SHOWN_DIFFERENCES].tolist()
    )
    rows = "" if mine.ndim == 1 else f" in rows {places[0, 0]} to {places[-1, 0]}"
    return f"{len(places)} of {mine.size} differ{rows}; {shown}"
