"""Timelines in the JSON format of Chrome's traces, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import UNITS, Instruction, Unit
from openmxu.disassembler import format_instruction
from openmxu.profiling.timeline import Timeline
from openmxu.program import Program

__all__ = ["chrome_trace"]

_DISPATCHER, _WAITS = 0, 1 + len(UNITS)
_THREADS = {
    _DISPATCHER: "dispatcher",
    1 + Unit.HOST_READ: "host reader",
    1 + Unit.HOST_WRITE: "host writer",
    1 + Unit.WEIGHT: "weight fetcher",
    1 + Unit.MATRIX: "matrix unit",
    1 + Unit.ACTIVATION: "activation unit",
    _WAITS: "matrix unit waits",
}
_REASONS = {
    "raw_stall": "stalled on RAW",
    "input_stall": "stalled on input",
    "weight_stall": "stalled on weights",
    "weight_shift": "stalled on shift",
}
"""What the matrix unit waits for, in the order in which it does so before a multiplication's first row."""


def chrome_trace(program: Program, timelines: Sequence[Timeline]) -> dict[str, Any]:
    """The timelines as an object for :func:`json.dumps`. A cycle is a microsecond of the trace.

    Each timeline is a process, and each unit a thread of it, with a complete event for each instruction. The slice of
    an instruction ends where the next one of its unit begins, if that is before its end, because slices of a thread
    may not overlap; the arguments have the cycles as they are. A slice of the dispatcher is the time that dispatch
    spends on an instruction that needs no unit. Waits of the matrix unit are drawn in a thread of their own, before the
    first row of the multiplication that waits.
    """
    events: list[dict[str, Any]] = []
    for process, timeline in enumerate(timelines, 1):
        events.append(_metadata(process, 0, "process_name", name=f"openmxu, {timeline.source}"))
        events.append(_metadata(process, 0, "process_sort_index", sort_index=process))
        for thread, name in _THREADS.items():
            events.append(_metadata(process, thread, "thread_name", name=name))
            events.append(_metadata(process, thread, "thread_sort_index", sort_index=thread))
        events += _instructions(program, timeline, process)
        events += _waits(timeline, process)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "unit": "1 cycle = 1 us",
            "instructions": len(program.instructions),
            **{f"cycles, {timeline.source}": timeline.cycles for timeline in timelines},
        },
    }


def _metadata(process: int, thread: int, kind: str, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": arguments}


def _slice(process: int, thread: int, kind: str, name: str, begin: int, end: int, **arguments: Any) -> dict[str, Any]:
    place = {"ph": "X", "pid": process, "tid": thread, "cat": kind, "name": name}
    return {**place, "ts": begin, "dur": end - begin, "args": arguments}


def _instructions(program: Program, timeline: Timeline, process: int) -> Iterator[dict[str, Any]]:
    """A slice for each instruction."""
    begins, ends = _spans(timeline)
    texts: dict[Instruction, str] = {}
    for number, instruction in enumerate(program.instructions):
        text = texts.get(instruction) or texts.setdefault(instruction, format_instruction(instruction))
        layer = int(timeline.layer[number])
        arguments: dict[str, Any] = {"index": number, "text": text}
        if layer >= 0:
            arguments["layer"] = program.layers[layer].name
        arguments |= {name: int(getattr(timeline, name)[number]) for name in ("accepted", "begun", "done")}
        arguments |= {name: int(cycles[number]) for name, cycles in timeline.stalls.items() if cycles[number]}
        thread, begin, end = 1 + int(timeline.unit[number]), int(begins[number]), int(ends[number])
        yield _slice(process, thread, "instruction", instruction.name, begin, end, **arguments)


def _spans(timeline: Timeline) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The begin and end of each instruction's slice."""
    begins, ends = timeline.begun.copy(), timeline.done.copy()
    # Dispatch takes an instruction when it has handed over the one before it.
    own = np.flatnonzero(timeline.unit < 0)
    begins[own] = np.append(0, timeline.accepted)[own]
    ends[own] = timeline.accepted[own]
    for unit in Unit:
        numbers = np.flatnonzero(timeline.unit == unit)
        ends[numbers[:-1]] = np.minimum(ends[numbers[:-1]], begins[numbers[1:]])
    return begins, np.maximum(begins, ends)


def _waits(timeline: Timeline, process: int) -> Iterator[dict[str, Any]]:
    """A slice for each reason for which a multiplication waits."""
    free = 0
    for number in np.flatnonzero(timeline.unit == Unit.MATRIX).tolist():
        end = int(timeline.begun[number])
        cycles = {name: int(timeline.stalls[name][number]) for name in _REASONS}
        begin = end - sum(cycles.values())
        for name, count in cycles.items():
            # The same cycle may be a wait for the activation unit and for the host, and a second pass waits later.
            first, last = max(free, begin), max(free, begin + count)
            if count:
                yield _slice(process, _WAITS, "stall", _REASONS[name], first, last, index=number, cycles=count)
            begin += count
        free = max(free, end)
