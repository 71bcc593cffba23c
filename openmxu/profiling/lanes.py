"""The timeline as the page draws it: a lane for each unit, and one for each reason for which the matrix unit waits."""

from __future__ import annotations

from typing import Any

import numpy as np

from openmxu.disassembler import format_instruction
from openmxu.profiling.charts import KIND_COLOURS, UNIT_COLOURS
from openmxu.profiling.profile import Profile
from openmxu.profiling.timeline import STALLS, Lane, Timeline, Wait, drawn_slices, drawn_waits

__all__ = ["timeline_lanes"]

_ROWS = {
    "host read": Lane.HOST_READ,
    "weights": Lane.WEIGHT,
    "matrix": Lane.MATRIX,
    "matrix waits": None,
    "activation": Lane.ACTIVATION,
    "loads": Lane.LOAD,
    "host write": Lane.HOST_WRITE,
    "dispatcher": Lane.DISPATCHER,
}
"""From top to bottom the rows of the picture, each with the instructions that it shows."""


def timeline_lanes(profile: Profile) -> dict[str, Any]:
    """Instructions by unit and waits by reason, in lists and numbers, for the page's script."""
    timeline = profile.timeline
    places, begins, ends = drawn_slices(profile.program, timeline)
    waits = list(drawn_waits(timeline))
    lanes = []
    for place, (name, row) in enumerate(_ROWS.items()):
        if row is None:
            for reason in STALLS:
                lanes.append(_waits(timeline, [wait for wait in waits if wait.reason == reason], reason, place))
        else:
            own = np.flatnonzero(places == row)
            instructions = {
                "begun": begins[own].tolist(),
                "end": ends[own].tolist(),
                "done": timeline.done[own].tolist(),
                "layer": timeline.layer[own].tolist(),
                "index": own.tolist(),
            }
            colour = UNIT_COLOURS["activation" if row == Lane.LOAD else row.name.lower()]
            lanes.append({"name": name, "place": place, "color": colour, **instructions})
    return {
        "cycles": timeline.cycles,
        "rows": list(_ROWS),
        "lanes": [lane for lane in lanes if lane["begun"]],
        "layers": [layer.name for layer in profile.program.layers],
        "text": [format_instruction(instruction) for instruction in profile.program.instructions],
        "stalls": _stalls(timeline),
    }


def _waits(timeline: Timeline, waits: list[Wait], reason: str, place: int) -> dict[str, Any]:
    """The waits for one reason."""
    ends = [wait.end for wait in waits]
    return {
        "name": f"matrix unit: {reason.replace('_', ' ')}",
        "place": place,
        "color": KIND_COLOURS[reason],
        "begun": [wait.begin for wait in waits],
        "end": ends,
        "done": ends,
        "layer": [int(timeline.layer[wait.number]) for wait in waits],
    }


def _stalls(timeline: Timeline) -> dict[int, list[str]]:
    """For each multiplication that waits what it waits for, in words."""
    found: dict[int, list[str]] = {}
    for reason in STALLS:
        values = timeline.stalls[reason]
        for number in np.flatnonzero(values).tolist():
            found.setdefault(number, []).append(f"{reason.replace('_', ' ')}: {int(values[number]):,} cycles")
    return found
