"""The profile as one HTML page that needs neither a network nor other files."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from plotly.offline import get_plotlyjs

from openmxu.html_table import html_table
from openmxu.profiling.charts import accounting_chart, occupancy_chart, roofline_chart
from openmxu.profiling.lanes import timeline_lanes
from openmxu.profiling.limits import limit_in_words
from openmxu.profiling.profile import POINTS, Profile
from openmxu.report_table import REPORT_HEADINGS, report_rows
from openmxu.reporting import Report

__all__ = ["profile_page"]

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<script>{plotly}</script>
</head>
<body>
<main>
<section>
<h1>{title}</h1>
<p id="source">{source}</p>
<p id="sum" class="{exactness}">{sum}</p>
<dl>{facts}</dl>
</section>
<section id="layers">
<h2>Layers</h2>
<p>The bound is the number of cycles that the busiest part of the core needs in any case; bound ÷ cycles is 1 on the
roofline, and more where that part works during other layers' cycles.</p>
<div class="box">{layers}</div>
</section>
<section id="limits">
<h2>What limits each layer</h2>
<div class="box">{limits}</div>
</section>
<section>
<h2>Where the cycles went</h2>
<p>The array works, waits for weights to arrive or to be shifted in, or has no multiplication to do. RAW stalls (waits
for the activation unit) and input stalls (waits for rows from the host) are a part of that.</p>
<div id="accounting" class="chart"></div>
</section>
<section>
<h2>Roofline</h2>
<p>Each point is a layer: the closer to the line, the less a better schedule can gain. Triangles take no weights from
memory.</p>
<div id="roofline" class="chart"></div>
</section>
<section>
<h2>Timeline of the units</h2>
<p>Drag over the cycles to zoom, double-click to see all. Instructions too short to tell apart are joined, and paler the
more their unit is idle between them.</p>
<label>Show <select id="layer">{choices}</select></label>
<div id="timeline" class="chart"></div>
</section>
<section>
<h2>Unified buffer</h2>
<p>Rows that hold something still to be read. It zooms with the timeline.</p>
<div id="occupancy" class="chart"></div>
</section>
{array_view}
<footer>The same numbers are in profile.json.</footer>
</main>
<script type="application/json" id="charts">{charts}</script>
<script type="application/json" id="timeline-data">{timeline}</script>
<script>{script}</script>
</body>
</html>
"""


def profile_page(profile: Profile, array_view: str = "") -> str:
    """The page of a profile.

    Parameters
    ----------
    array_view
        HTML that is put behind the charts as it is; it brings the styles and the scripts that it needs.
    """
    charts = {
        "accounting": accounting_chart(profile),
        "roofline": roofline_chart(profile),
        "occupancy": occupancy_chart(profile, POINTS),
    }
    layers = profile.report.layers
    exactness = "" if profile.counted is None else ("inexact" if profile.difference else "exact")
    return _PAGE.format(
        title=escape(f"Profile of {profile.model}"),
        style=_own("page.css"),
        plotly=get_plotlyjs(),
        source=escape(_source(profile)),
        exactness=exactness,
        sum=escape(_sum(profile)),
        facts=_facts(profile),
        layers=html_table(REPORT_HEADINGS, _layer_rows(profile), last_is_total=True),
        limits=html_table(
            ("layer", "limited by", "in words"),
            [(layer.name, layer.limit, limit_in_words(layer)) for layer in layers],
        ),
        choices=_choices(profile),
        array_view=array_view,
        charts=_embedded(charts),
        timeline=_embedded(timeline_lanes(profile)),
        script=_own("page.js"),
    )


def _own(name: str) -> str:
    return files("openmxu.profiling").joinpath(name).read_text("utf-8")


def _embedded(value: Any) -> str:
    """JSON that cannot end the script element that it is in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _source(profile: Profile) -> str:
    where = f"One execution of a batch of {profile.program.batch} on the device {profile.device}."
    if profile.elements < profile.program.batch:
        where += f" The input has {profile.elements} of them; the others are zeros."
    if profile.timeline.source == "model":
        return f"{where} The cycle model predicts the times of layers and instructions."
    return f"{where} The times of layers and instructions were recorded there."


def _sum(profile: Profile) -> str:
    cycles, counted = profile.cycles - profile.difference, profile.counted
    if counted is None:
        return f"The layers' cycles add up to {cycles:,}, which the cycle model predicts. The device has no clock."
    if not profile.difference:
        return f"The layers' cycles add up to {cycles:,}, exactly the device's counter CYCLES."
    return (
        f"The device's counter CYCLES is {counted:,}; the layers' predicted cycles add up to {cycles:,}. The rest, "
        f"{profile.difference:+,}, is a row of its own in the table."
    )


def _facts(profile: Profile) -> str:
    config, buffer = profile.program.config, profile.occupancy
    facts = [
        ("cycles", "cycles", f"{profile.cycles:,}"),
        ("utilization", "utilization of the array", f"{profile.utilization:.3f}"),
        ("device", "device", profile.device),
        ("size", "array", f"{config.size} × {config.size}, profile {config.profile}"),
        ("batch", "batch", f"{profile.program.batch:,}"),
        ("instructions", "instructions", f"{len(profile.program.instructions):,}"),
        ("multiply-adds", "multiply-adds", f"{profile.program.multiply_adds:,}"),
        ("buses", "buses", f"host {config.host_data_bytes}, weights {config.weight_data_bytes} bytes"),
        ("memories", "memories", _memories(profile.report)),
        ("lanes", "activation lanes", f"{config.activation_lanes}"),
        (
            "rows",
            "most live rows of the unified buffer",
            f"{buffer.peak:,} of {buffer.available:,}",
        ),
        ("accumulators", "accumulator rows", f"{config.accumulator_rows:,}"),
    ]
    return "".join(f'<div><dt>{name}</dt><dd id="{id}">{escape(value)}</dd></div>' for id, name, value in facts)


def _memories(report: Report) -> str:
    rates = (("host", report.host_rate), ("weights", report.weight_rate))
    limits = [f"{name} at {float(rate):g} bytes per cycle" for name, rate in rates if rate is not None]
    return ", ".join((f"{report.memory_latency} cycles away", *limits))


def _layer_rows(profile: Profile) -> list[tuple[str | int | float, ...]]:
    """The rows of the report; before the total, cycles that no layer has."""
    *rows, total = report_rows(profile.report)
    if profile.difference:
        rows.append(_row("not in any layer", cycles=profile.difference))
    *_, cycles_place = (place for place, heading in enumerate(REPORT_HEADINGS) if heading == "cycles")
    corrected = (*total[:cycles_place], profile.cycles, *total[cycles_place + 1 :])
    return [*rows, corrected]


def _row(name: str, **values: int) -> tuple[str | int | float, ...]:
    return (name, *(values.get(heading, "") for heading in REPORT_HEADINGS[1:]))


def _choices(profile: Profile) -> str:
    """Options that show all cycles, or those in which instructions of one layer are executed."""
    timeline = profile.timeline
    spans = [("all cycles", 0, timeline.cycles)]
    for number, layer in enumerate(profile.program.layers):
        own = timeline.layer == number
        if own.any():
            spans.append((layer.name, int(timeline.begun[own].min()), int(timeline.done[own].max())))
    return "".join(f'<option value="{first} {last}">{escape(name)}</option>' for name, first, last in spans)
