"""Expected values of a device's counters after a case, as far as its instructions determine them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from openmxu.arch.config import Config
from openmxu.arch.effects import unit_of
from openmxu.arch.events import Counter
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode, Unit
from tb.lockstep.case import Case
from tb.lockstep.programs.steps import Step, steps

__all__ = ["Work", "counter_problem", "expected_work"]

_KINDS_OF_CYCLES = (Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT, Counter.NON_MATRIX)
"""Counters of cycles of different kinds, which add up to all cycles."""

_PARTS = {
    **dict.fromkeys((counter for counter in Counter if counter.name.endswith("_BUSY")), Counter.CYCLES),
    Counter.ARRAY_ACTIVE: Counter.MATRIX_BUSY,
    Counter.RAW_STALL: Counter.NON_MATRIX,
    Counter.INPUT_STALL: Counter.NON_MATRIX,
}
"""Counters that count a subset of the cycles of another counter."""

_RETIRED = {
    Unit.HOST_READ: Counter.RETIRED_HOST_READ,
    Unit.HOST_WRITE: Counter.RETIRED_HOST_WRITE,
    Unit.WEIGHT: Counter.RETIRED_READ_WEIGHTS,
    Unit.MATRIX: Counter.RETIRED_MATRIX,
    Unit.ACTIVATION: Counter.RETIRED_ACTIVATION,
    None: Counter.RETIRED_OTHER,
}
_BYTES = {Unit.HOST_READ: Counter.HOST_READ_BYTES, Unit.HOST_WRITE: Counter.HOST_WRITE_BYTES}
_CONTIGUOUS = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)


@dataclass
class Work:
    """Expected counters after some instructions.

    Attributes
    ----------
    exact
        Exact values of counters, and the least value of ``WEIGHT_BYTES``.
    most_weight_bytes
        Greatest value of ``WEIGHT_BYTES``: tiles that no multiplication takes may have been fetched when a program
        ends.
    """

    exact: dict[Counter, int] = field(
        default_factory=lambda: dict.fromkeys(
            [Counter.ARRAY_ACTIVE, Counter.WEIGHT_BYTES, *_RETIRED.values(), *_BYTES.values()], 0
        )
    )
    most_weight_bytes: int = 0


def expected_work(case: Case) -> list[Work]:
    """Expected counters after each call of ``execute``, counted from the beginning of the case."""
    work = [Work()]
    # For each queued tile whether it is from weight memory.
    queued: deque[bool] = deque()
    for step in steps(case):
        if step.execution == len(work):
            work.append(Work(dict(work[-1].exact), work[-1].most_weight_bytes))
        if step.fault is FaultCode.NONE:
            _count(work[-1], step, queued)
        if step.fault is not FaultCode.NONE or step.opcode is Opcode.HALT:
            queued.clear()
    return work


def counter_problem(counters: Mapping[Counter, int], work: Work) -> str:
    """An error in the available ``counters`` after ``work``, described in one line; empty if there is none."""
    kinds = {kind.name.lower(): counters[kind] for kind in _KINDS_OF_CYCLES if kind in counters}
    if kinds and sum(kinds.values()) != counters[Counter.CYCLES]:
        return f"{counters[Counter.CYCLES]} cycles are not the sum of {kinds}"
    for counter, expected in work.exact.items():
        if counter not in counters:
            continue
        most = work.most_weight_bytes if counter is Counter.WEIGHT_BYTES else expected
        if not expected <= counters[counter] <= most:
            limits = expected if most == expected else f"{expected} to {most}"
            return f"{counter.name.lower()} is {counters[counter]} instead of {limits}"
    for part, whole in _PARTS.items():
        if part in counters and counters[part] > counters[whole]:
            return f"{part.name.lower()} is {counters[part]}, more than {whole.name.lower()}, {counters[whole]}"
    return ""


def _count(work: Work, step: Step, queued: deque[bool]) -> None:
    unit, values, config = unit_of(step.instruction), step.values, step.state.config
    work.exact[_RETIRED[unit]] += 1
    if step.opcode is Opcode.LOAD_WEIGHTS:
        queued.append(False)
    elif unit in _BYTES:
        beats = _contiguous_beats(config, values) if step.opcode in _CONTIGUOUS else _alternate_beats(config, values)
        work.exact[_BYTES[unit]] += beats * config.host_data_bytes
    elif unit is Unit.WEIGHT:
        work.most_weight_bytes += values["tiles"] * _bytes_of_tile(config)
        queued += [True] * values["tiles"]
    elif unit is Unit.MATRIX:
        passes = (1 + values["wide_input"]) * (1 + values["wide_weights"])
        rows = values["rows"] if step.opcode is Opcode.MATRIX_MULTIPLY else values["height"] * values["width"]
        work.exact[Counter.ARRAY_ACTIVE] += passes * rows
        if values["next_tile"]:
            fetched = sum(queued.popleft() for _ in range(1 + values["wide_weights"]))
            work.exact[Counter.WEIGHT_BYTES] += fetched * _bytes_of_tile(config)


def _contiguous_beats(config: Config, values: Mapping[str, int]) -> int:
    """Number of beats that contain bytes of the rows."""
    first = values["host"] // config.host_data_bytes
    last = (values["host"] + values["rows"] * config.size - 1) // config.host_data_bytes
    return last - first + 1


def _alternate_beats(config: Config, values: Mapping[str, int]) -> int:
    """The same for alternate transfers, row by row: a row begins with a beat, or lies within one."""
    return values["rows"] * max(1, config.size // config.host_data_bytes)


def _bytes_of_tile(config: Config) -> int:
    """Bytes fetched for a tile, which begins with a beat, or lies within one."""
    return max(config.tile_bytes, config.weight_data_bytes)
