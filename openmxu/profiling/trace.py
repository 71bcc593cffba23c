"""Timelines in the JSON format of Chrome's traces, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from openmxu.arch.isa import Instruction
from openmxu.disassembler import format_instruction
from openmxu.profiling.timeline import Lane, Timeline, drawn_slices, drawn_waits
from openmxu.program import Program

__all__ = ["chrome_trace"]

_WAITS = 1 + max(Lane)
_THREADS = {
    Lane.DISPATCHER: "dispatcher",
    Lane.HOST_READ: "host reader",
    Lane.HOST_WRITE: "host writer",
    Lane.WEIGHT: "weight fetcher",
    Lane.MATRIX: "matrix unit",
    Lane.ACTIVATION: "activation unit",
    Lane.LOAD: "activation unit loads",
    _WAITS: "matrix unit waits",
}
_REASONS = {
    "raw_stall": "stalled on RAW",
    "input_stall": "stalled on input",
    "weight_stall": "stalled on weights",
    "weight_shift": "stalled on shift",
}


def chrome_trace(program: Program, timelines: Sequence[Timeline]) -> dict[str, Any]:
    """The timelines as an object for :func:`json.dumps`. A cycle is a microsecond of the trace.

    Each timeline is a process, and each :class:`~openmxu.profiling.timeline.Lane` a thread of it, with a complete event
    for each instruction. Slices of a thread may not overlap, or viewers drop them, and are cut where they would; the
    arguments have the cycles as they are. Waits of the matrix unit are in a thread of their own, before the first row
    of the multiplication that waits.
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


def _thread(process: int, thread: int) -> int:
    """Its number in the file. Perfetto takes 0 for no thread, and expects numbers to be unique over all processes."""
    return 100 * process + thread


def _metadata(process: int, thread: int, kind: str, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": _thread(process, thread), "name": kind, "args": arguments}


def _slice(process: int, thread: int, kind: str, name: str, begin: int, end: int, **arguments: Any) -> dict[str, Any]:
    place = {"ph": "X", "pid": process, "tid": _thread(process, thread), "cat": kind, "name": name}
    return {**place, "ts": begin, "dur": end - begin, "args": arguments}


def _instructions(program: Program, timeline: Timeline, process: int) -> Iterator[dict[str, Any]]:
    """A slice for each instruction."""
    lanes, begins, ends = drawn_slices(program, timeline)
    texts: dict[Instruction, str] = {}
    for number, instruction in enumerate(program.instructions):
        text = texts.get(instruction) or texts.setdefault(instruction, format_instruction(instruction))
        layer = int(timeline.layer[number])
        arguments: dict[str, Any] = {"index": number, "text": text}
        if layer >= 0:
            arguments["layer"] = program.layers[layer].name
        arguments |= {name: int(getattr(timeline, name)[number]) for name in ("accepted", "begun", "done")}
        arguments |= {name: int(cycles[number]) for name, cycles in timeline.stalls.items() if cycles[number]}
        thread, begin, end = int(lanes[number]), int(begins[number]), int(ends[number])
        yield _slice(process, thread, "instruction", instruction.name, begin, end, **arguments)


def _waits(timeline: Timeline, process: int) -> Iterator[dict[str, Any]]:
    """A slice for each reason for which a multiplication waits."""
    for wait in drawn_waits(timeline):
        cycles = int(timeline.stalls[wait.reason][wait.number])
        name = _REASONS[wait.reason]
        yield _slice(process, _WAITS, "stall", name, wait.begin, wait.end, index=wait.number, cycles=cycles)
