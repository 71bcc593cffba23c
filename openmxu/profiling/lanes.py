"""The timeline as the page draws it: a lane for each unit, and one for each reason for which the matrix unit waits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Unit
from openmxu.disassembler import format_instruction
from openmxu.profiling.charts import KIND_COLOURS, UNIT_COLOURS
from openmxu.profiling.profile import Profile
from openmxu.profiling.timeline import STALLS, Timeline

__all__ = ["timeline_lanes"]

_DISPATCHER = -1
_ROWS = {
    "host read": Unit.HOST_READ,
    "weights": Unit.WEIGHT,
    "matrix": Unit.MATRIX,
    "matrix waits": None,
    "activation": Unit.ACTIVATION,
    "host write": Unit.HOST_WRITE,
    "dispatcher": _DISPATCHER,
}
"""From top to bottom the rows of the picture, each with the unit whose instructions it shows."""


def timeline_lanes(profile: Profile) -> dict[str, Any]:
    """Instructions by unit and waits by reason, in lists and numbers, for the page's script."""
    timeline = profile.timeline
    lanes = []
    for place, (name, unit) in enumerate(_ROWS.items()):
        if unit is None:
            lanes += [_waits(timeline, reason, place) for reason in STALLS]
        else:
            colour = UNIT_COLOURS["dispatcher" if unit == _DISPATCHER else Unit(unit).name.lower()]
            lanes.append(_instructions(timeline, np.flatnonzero(timeline.unit == unit), name, place, colour))
    return {
        "cycles": timeline.cycles,
        "rows": list(_ROWS),
        "lanes": [lane for lane in lanes if lane["begun"]],
        "layers": [layer.name for layer in profile.program.layers],
        "text": [format_instruction(instruction) for instruction in profile.program.instructions],
        "stalls": _stalls(timeline),
    }


def _instructions(timeline: Timeline, own: NDArray[np.intp], name: str, place: int, colour: str) -> dict[str, Any]:
    begun, done = timeline.begun[own], timeline.done[own]
    # A unit begins with its next instruction before the last results of the one before have left it.
    end = np.minimum(done, np.append(begun[1:], timeline.cycles)).clip(begun)
    return {
        "name": name,
        "place": place,
        "color": colour,
        "begun": begun.tolist(),
        "end": end.tolist(),
        "done": done.tolist(),
        "layer": timeline.layer[own].tolist(),
        "index": own.tolist(),
    }


def _waits(timeline: Timeline, reason: str, place: int) -> dict[str, Any]:
    """The waits for one reason before each multiplication, one reason's behind the other's up to its begin."""
    own = np.flatnonzero(timeline.stalls[reason])
    later = sum((timeline.stalls[other][own] for other in _before(reason)), np.zeros(len(own), np.int64))
    end = (timeline.begun[own] - later).clip(0)
    begun = (end - timeline.stalls[reason][own]).clip(0)
    return {
        "name": f"matrix unit: {reason.replace('_', ' ')}",
        "place": place,
        "color": KIND_COLOURS[reason],
        "begun": begun.tolist(),
        "end": end.tolist(),
        "done": end.tolist(),
        "layer": timeline.layer[own].tolist(),
    }


def _before(reason: str) -> tuple[str, ...]:
    """The reasons whose waits are drawn between those of this one and the begin of the multiplication."""
    order = ("weight_shift", "weight_stall", "raw_stall", "input_stall")
    return order[: order.index(reason)]


def _stalls(timeline: Timeline) -> dict[int, list[str]]:
    """For each multiplication that waits what it waits for, in words."""
    found: dict[int, list[str]] = {}
    for reason in STALLS:
        values = timeline.stalls[reason]
        for number in np.flatnonzero(values).tolist():
            found.setdefault(number, []).append(f"{reason.replace('_', ' ')}: {int(values[number]):,} cycles")
    return found
