"""A page on which a recorded array is stepped, cycle by cycle."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from openmxu.profiling.array_drawing import Box, Drawing

if TYPE_CHECKING:
    from openmxu.sim.array_recording import ArrayRecording

__all__ = ["array_page_html", "array_view_html"]

_STYLE = """\
.array-view{--array-view-text:#1a202c;--array-view-note:#4a5568;--array-view-line:#718096;--array-view-faint:#cbd5e0;
--array-view-element:#f4f6f8;--array-view-ink0:#1a5299;--array-view-ink1:#92500a;--array-view-fill0:#d6e6fa;
--array-view-fill1:#fbe3bd;max-width:960px;padding:4px;color:var(--array-view-text);font-family:Helvetica,Arial,sans-serif;
font-size:15px;line-height:1.4}
@media(prefers-color-scheme:dark){.array-view{--array-view-text:#e2e8f0;--array-view-note:#a9b6c6;
--array-view-line:#8493a8;--array-view-faint:#3d4a5c;--array-view-element:#1b2430;--array-view-ink0:#8cc2ff;
--array-view-ink1:#ffbe63;--array-view-fill0:#1c3858;--array-view-fill1:#4a3310}}
.array-view-controls{display:flex;flex-wrap:wrap;gap:8px;align-items:center}
.array-view-controls button{font:inherit;color:inherit;background:var(--array-view-element);
border:1px solid var(--array-view-line);border-radius:6px;min-width:44px;padding:6px 10px;cursor:pointer}
.array-view-controls input{flex:1 1 140px;min-width:100px;accent-color:var(--array-view-ink0)}
.array-view-cycle{min-width:8em;font-variant-numeric:tabular-nums}
.array-view-caption{margin:8px 0;min-height:1.4em}
.array-view-scroll{overflow-x:auto}
.array-view-drawing{display:block;width:100%;height:auto}
.array-view-drawing text{text-anchor:middle;fill:var(--array-view-note);font-size:14px}
.array-view-drawing .array-view-label{font-size:12px}
.array-view-drawing .array-view-start{text-anchor:start}
.array-view-drawing .array-view-end{text-anchor:end}
.array-view-drawing .array-view-element{fill:var(--array-view-element);stroke:var(--array-view-line)}
.array-view-drawing .array-view-register{fill:none;stroke:var(--array-view-faint)}
.array-view-drawing .array-view-fill0{fill:var(--array-view-fill0)}
.array-view-drawing .array-view-fill1{fill:var(--array-view-fill1)}
.array-view-drawing .array-view-empty{fill:none}
.array-view-drawing text.array-view-ink0{fill:var(--array-view-ink0)}
.array-view-drawing text.array-view-ink1{fill:var(--array-view-ink1)}
.array-view-drawing .array-view-weight,.array-view-drawing .array-view-result{font-weight:bold}
.array-view-drawing text.array-view-next{font-size:12px}
.array-view-drawing .array-view-sum{font-style:italic}
.array-view-note{color:var(--array-view-note);font-size:14px}
"""

_SCRIPT = """\
(() => {
  const root = document.currentScript.closest(".array-view");
  const { cycles, captions, slots } = JSON.parse(root.querySelector(".array-view-data").textContent);
  const find = (name) => root.querySelector(".array-view-" + name);
  const places = [...root.querySelectorAll("[data-slot]")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const period = 900;
  let cycle = 0;
  let timer = null;
  const show = (wanted) => {
    const following = wanted === cycle + 1;
    cycle = Math.max(0, Math.min(cycles - 1, wanted));
    for (const place of places) {
      const { move, runs } = slots[place.dataset.slot];
      const run = runs.find(([start, stop]) => start <= cycle && cycle < stop);
      const isText = place.tagName === "text";
      const colour = run ? (isText ? "ink" : "fill") + (run[3] % 2) : "empty";
      place.setAttribute("class", place.dataset.kind + " array-view-" + colour);
      if (!isText) continue;
      place.textContent = run ? run[2] : "";
      for (const motion of place.getAnimations()) motion.cancel();
      if (run && following && run[0] === cycle && !still.matches) {
        const from = `translate(${move[0]}px, ${move[1]}px)`;
        place.animate([{ transform: from }, { transform: "none" }], { duration: 300, easing: "ease-out" });
      }
    }
    find("slider").value = cycle;
    find("cycle").textContent = `cycle ${cycle} of ${cycles - 1}`;
    find("caption").textContent = captions[cycle];
  };
  const pause = () => {
    clearInterval(timer);
    timer = null;
    find("play").textContent = "▶ play";
  };
  const play = () => {
    if (cycle === cycles - 1) show(0);
    timer = setInterval(() => (cycle === cycles - 1 ? pause() : show(cycle + 1)), period);
    find("play").textContent = "❚❚ pause";
  };
  const step = (distance) => {
    pause();
    show(cycle + distance);
  };
  find("back").onclick = () => step(-1);
  find("forward").onclick = () => step(1);
  find("play").onclick = () => (timer === null ? play() : pause());
  find("slider").oninput = (event) => step(Number(event.target.value) - cycle);
  root.onkeydown = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const distance = { ArrowLeft: -1, ArrowRight: 1, Home: -cycles, End: cycles }[event.key];
    if (distance !== undefined) step(distance);
    else if (event.key === " " && event.target.tagName !== "BUTTON") find("play").onclick();
    else return;
    event.preventDefault();
  };
  pause();
  show(0);
})();
"""

_NOTE = """\
Each square is a processing element. Above: the weight of the next tile, on its way down. In the middle: the activation,
which goes to the right, × the weight in use. Below: the partial sum, which goes down; it lags two cycles behind the
activation, for product and sum have a register each. The small squares are the registers that skew rows and weights.
Colours alternate from tile to tile. The values are those of the registers in a simulation of the RTL; only the sums
below the array are added up outside of it, as the accumulators do."""


def array_view_html(recording: ArrayRecording) -> str:
    """An HTML fragment that shows a product cycle by cycle, with buttons, a slider and keys.

    It needs nothing from elsewhere, and all of its classes begin with ``array-view``. The arrow keys step, Home and End
    go to the first and the last cycle, and the space bar plays, while the fragment has the focus.
    """
    drawing = Drawing(recording)
    slots = drawing.slots
    data = {
        "cycles": drawing.cycles,
        "captions": drawing.captions,
        "slots": [
            {"move": slot.move, "runs": [(run.start, run.stop, run.text, run.tile) for run in slot.runs]}
            for slot in slots
        ],
    }
    shapes = [
        *(f'<rect class="array-view-element" {_place(box)}/>' for box in drawing.elements),
        *(f'<rect class="array-view-register" {_place(box)}/>' for box in drawing.registers),
        *(
            f'<rect data-slot="{index}" data-kind="array-view-box" class="array-view-empty" {_place(slot.box)}/>'
            for index, slot in enumerate(slots)
            if slot.box is not None
        ),
        *(f'<rect class="array-view-register" {_place(box)}/>' for box in drawing.sums),
        *(
            f'<text class="array-view-label array-view-{label.anchor}" x="{label.x:g}" y="{label.y:g}">'
            f"{escape(label.text)}</text>"
            for label in drawing.labels
        ),
        *(
            f'<text data-slot="{index}" data-kind="array-view-{slot.kind}" x="{slot.x:g}" y="{slot.y:g}"></text>'
            for index, slot in enumerate(slots)
        ),
    ]
    # A wide drawing scrolls on a narrow screen rather than becoming unreadable.
    narrowest = min(drawing.width, max(340, round(0.8 * drawing.width)))
    size = recording.size
    return "\n".join(
        (
            '<section class="array-view" tabindex="0" aria-label="The systolic array, cycle by cycle">',
            f"<style>\n{_STYLE}</style>",
            '<div class="array-view-controls">',
            '<button type="button" class="array-view-back" aria-label="one cycle back">◀</button>',
            '<button type="button" class="array-view-play">▶ play</button>',
            '<button type="button" class="array-view-forward" aria-label="one cycle forward">▶</button>',
            f'<input type="range" class="array-view-slider" min="0" max="{drawing.cycles - 1}" value="0" '
            'aria-label="cycle">',
            '<output class="array-view-cycle"></output>',
            "</div>",
            '<p class="array-view-caption"></p>',
            '<div class="array-view-scroll">',
            f'<svg class="array-view-drawing" viewBox="0 0 {drawing.width} {drawing.height}" '
            f'style="min-width:{narrowest}px;max-width:{round(1.25 * drawing.width)}px" role="img" '
            f'aria-label="An array of {size} by {size} processing elements">',
            *shapes,
            "</svg>",
            "</div>",
            f'<p class="array-view-note">{_NOTE}</p>',
            f'<script type="application/json" class="array-view-data">{json.dumps(data, ensure_ascii=False)}</script>',
            f"<script>\n{_SCRIPT}</script>",
            "</section>",
        )
    )


def array_page_html(recording: ArrayRecording) -> str:
    """A page with nothing but :func:`array_view_html` and a heading."""
    (rows, inner), columns = recording.left.shape, recording.right.shape[1]
    size = recording.size
    title = f"{rows} × {inner} by {inner} × {columns} on an array of {size} × {size}"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>",
            "<style>body{max-width:960px;margin:16px auto;padding:0 8px;font-family:Helvetica,Arial,sans-serif}",
            "h1{font-size:20px}</style>",
            f"<h1>{title}</h1>",
            array_view_html(recording),
            '<script>document.querySelector(".array-view").focus({ preventScroll: true });</script>',
            "</html>\n",
        )
    )


def _place(box: Box) -> str:
    return f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
