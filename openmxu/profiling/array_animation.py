"""An animated picture of a recorded array: an SVG without a script, for documents."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from openmxu.profiling.array_drawing import Box, Drawing, Run

if TYPE_CHECKING:
    from openmxu.sim.array_recording import ArrayRecording

__all__ = ["array_animation"]

_SECONDS = 0.8
"""Duration of a cycle."""

_HOLD = 4
"""Cycles for which the end is shown."""

_MOVING = 0.4
"""Part of a cycle in which a number moves to its place."""

_STYLE = """\
.card{fill:#fff}
.element{fill:#f4f6f8;stroke:#3b4a5a}
.register,.sums{fill:none;stroke:#a0aec0}
text{text-anchor:middle;fill:#4a5568}
.start{text-anchor:start}
.end{text-anchor:end}
.label{font-size:12px}
.weight,.result{font-weight:bold}
.next{font-size:12px}
.sum{font-style:italic}
.t0{fill:#1a5299}
.t1{fill:#92500a}
.b0{fill:#d6e6fa}
.b1{fill:#fbe3bd}
.weight-box{stroke:#3b4a5a}
.r{opacity:0}
.last{opacity:1}
@media(prefers-reduced-motion:reduce){.r{animation:none!important}}
"""


def array_animation(recording: ArrayRecording) -> str:
    """An SVG document that shows a product cycle by cycle, again and again.

    Every number is there from the beginning, and a CSS animation lets it move to its place and disappear. Viewers that
    do not animate, and readers who want no motion, get the end: the last weights and the product.
    """
    drawing = Drawing(recording)
    motions = _Motions(drawing.cycles + _HOLD)
    parts = [
        *(f'<rect class="element" {_place(box)}/>' for box in drawing.elements),
        *(f'<rect class="register" {_place(box)}/>' for box in drawing.registers),
    ]
    slots = drawing.slots
    # Boxes first, so that a number passes over the elements that it leaves.
    for slot in slots:
        if slot.box is not None:
            for run in slot.runs:
                classes = (
                    f"{motions.classes(run, (0, 0))}{_ending(slot.kind, run, drawing)} b{run.tile % 2} {slot.kind}-box"
                )
                parts.append(f'<rect class="{classes}" {_place(slot.box)}/>')
    parts += [f'<rect class="sums" {_place(box)}/>' for box in drawing.sums]
    parts += [
        f'<text class="label {label.anchor}" x="{label.x:g}" y="{label.y:g}">{escape(label.text)}</text>'
        for label in drawing.labels
    ]
    for slot in slots:
        texts = [
            f'<text class="{motions.classes(run, slot.move)}{_ending(slot.kind, run, drawing)} t{run.tile % 2}">'
            f"{run.text}</text>"
            for run in slot.runs
        ]
        parts.append(f'<g class="{slot.kind}" transform="translate({slot.x:g} {slot.y:g})">{"".join(texts)}</g>')
    counts = [Run(cycle, cycle + 1, f"cycle {cycle}", 0) for cycle in range(drawing.cycles)]
    texts = [f'<text class="{motions.classes(run, (0, 0))} start">{run.text}</text>' for run in counts]
    parts.append(f'<g transform="translate(10 18)">{"".join(texts)}</g>')
    (rows, inner), columns = recording.left.shape, recording.right.shape[1]
    title = f"A product of {rows} × {inner} by {inner} × {columns} on an array of {recording.size} × {recording.size}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {drawing.height}" '
            f'width="{drawing.width}" height="{drawing.height}" font-family="Helvetica, Arial, sans-serif" '
            f'font-size="14" role="img" aria-labelledby="title">',
            f'<title id="title">{title}</title>',
            f"<style>\n{_STYLE}{motions.style}</style>",
            f'<rect class="card" width="{drawing.width}" height="{drawing.height}" rx="8"/>',
            *parts,
            "</svg>\n",
        )
    )


class _Motions:
    """The animations of all runs: one for each length and direction, delayed until the run begins."""

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        self._names: dict[tuple[int, tuple[float, float]], str] = {}
        self._delays: set[int] = set()

    def classes(self, run: Run, move: tuple[float, float]) -> str:
        """Class names of a run."""
        stop = self._cycles if run.stop == self._cycles - _HOLD else run.stop
        name = self._names.setdefault((stop - run.start, move), f"m{len(self._names)}")
        self._delays.add(run.start)
        return f"r {name} d{run.start}"

    @property
    def style(self) -> str:
        """Rules of the classes."""
        duration = self._cycles * _SECONDS
        rules = [f".r{{animation:{duration:g}s linear infinite}}"]
        for (length, (x, y)), name in self._names.items():
            arrived, gone = (100 * part / self._cycles for part in (_MOVING, length))
            come = (
                f"0%{{opacity:1;transform:translate({x:g}px,{y:g}px)}}{arrived:.3f}%{{transform:none}}"
                if x or y
                else "0%{opacity:1}"
            )
            end = (
                "to{opacity:1}"
                if length == self._cycles
                else f"{gone - 0.001:.3f}%{{opacity:1}}{gone:.3f}%,to{{opacity:0}}"
            )
            rules += [f".{name}{{animation-name:{name}}}", f"@keyframes {name}{{{come}{end}}}"]
        # A negative delay: before its first turn a number is where it is at the end, which is out of sight.
        rules += [
            f".d{start}{{animation-delay:{(start - self._cycles) * _SECONDS if start else 0:g}s}}"
            for start in sorted(self._delays)
        ]
        return "\n".join(rules) + "\n"


def _ending(kind: str, run: Run, drawing: Drawing) -> str:
    """The class of what stays where nothing moves."""
    return " last" if kind in ("weight", "result") and run.stop == drawing.cycles else ""


def _place(box: Box) -> str:
    return f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
