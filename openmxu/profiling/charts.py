"""The charts of a profile as Plotly figures, without colours of text and lines: the page has those, light and dark."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from openmxu.profiling.limits import limit_in_words
from openmxu.profiling.profile import Profile
from openmxu.reporting import LayerReport

__all__ = ["KIND_COLOURS", "UNIT_COLOURS", "accounting_chart", "occupancy_chart", "roofline_chart"]

KIND_COLOURS = {
    "array_active": "#2a9d5c",
    "weight_stall": "#d1495b",
    "weight_shift": "#eda247",
    "raw_stall": "#7b5ea7",
    "input_stall": "#3f7fbf",
    "non_matrix": "#9aa3ad",
}
"""A colour for each kind of cycle, distinguishable without telling red from green."""

UNIT_COLOURS = {
    "host_read": "#3f7fbf",
    "host_write": "#57b0c9",
    "weight": "#d1495b",
    "matrix": "#2a9d5c",
    "activation": "#7b5ea7",
    "dispatcher": "#9aa3ad",
}

_NAMES = {
    "array_active": "array active",
    "weight_stall": "weight stall",
    "weight_shift": "weight shift",
    "raw_stall": "non-matrix: RAW stall",
    "input_stall": "non-matrix: input stall",
    "non_matrix": "non-matrix: other",
}
_LONGEST = 22
"""Characters of a layer's name that a chart shows."""

_LEGEND = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"}


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _figure(data: list[Any], height: int, **layout: Any) -> dict[str, Any]:
    margin = {"l": 10, "r": 10, "t": 10, "b": 10}
    figure = go.Figure(data, go.Layout(height=height, margin=margin, template=go.layout.Template(), **layout))
    return figure.to_plotly_json()


def _drawn(layer: LayerReport) -> dict[str, int]:
    """The cycles of a layer by kind such that they add up: stalls are drawn as far as other cycles have room for them.

    A cycle may be a RAW stall and an input stall at once, and a layer's waits may belong to another layer's cycles.
    """
    room = layer.kinds["non_matrix"]
    raw = min(layer.kinds["raw_stall"], room)
    waiting = min(layer.kinds["input_stall"], room - raw)
    return {**layer.kinds, "raw_stall": raw, "input_stall": waiting, "non_matrix": room - raw - waiting}


def accounting_chart(profile: Profile) -> dict[str, Any]:
    """A bar for each layer, stacked of the kinds of its cycles; buttons switch from cycles to shares."""
    layers = profile.report.layers
    places = list(range(len(layers)))
    drawn = [_drawn(layer) for layer in layers]
    bars = [
        go.Bar(
            name=_NAMES[kind],
            orientation="h",
            x=[parts[kind] for parts in drawn],
            y=places,
            marker={"color": colour},
            hovertext=[f"{layer.name}<br>{kind}: {layer.kinds[kind]:,} of {layer.cycles:,} cycles" for layer in layers],
            hoverinfo="text",
        )
        for kind, colour in KIND_COLOURS.items()
    ]
    buttons = [
        {"label": label, "method": "relayout", "args": [{"barnorm": norm, "xaxis.title.text": label}]}
        for label, norm in (("cycles", ""), ("% of cycles", "percent"))
    ]
    return _figure(
        bars,
        height=150 + 26 * len(layers),
        barmode="stack",
        legend={**_LEGEND, "traceorder": "normal"},
        updatemenus=[
            {
                "type": "buttons",
                "showactive": False,
                "direction": "right",
                "buttons": buttons,
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "pad": {"b": 6},
            }
        ],
        xaxis={"title": {"text": "cycles"}, "automargin": True},
        yaxis={
            "autorange": "reversed",
            "automargin": True,
            "tickvals": places,
            "ticktext": [_short(layer.name) for layer in layers],
            "fixedrange": True,
        },
    )


def roofline_chart(profile: Profile) -> dict[str, Any]:
    """Multiply-adds per cycle over multiply-adds per byte of weights, both logarithmic, below the two ceilings."""
    array, memory = profile.program.config.size**2, profile.weight_rate
    shown = [layer for layer in profile.report.layers if layer.multiply_adds and layer.cycles]
    found = [profile.intensity(layer) for layer in shown]
    known = [value for value in found if value is not None]
    ridge = array / memory
    lowest, highest = min((*known, ridge)) / 4, max((*known, ridge)) * 4
    # Layers without weights from memory are drawn at the right edge: no byte of weights can limit them.
    places = [highest if value is None else value for value in found]
    rates = [layer.multiply_adds / layer.cycles for layer in shown]
    ceiling = go.Scatter(
        name=f"ceilings: array {array:,} per cycle, weights {memory:g} bytes per cycle",
        x=[lowest, ridge, highest],
        y=[lowest * memory, array, array],
        mode="lines",
        line={"color": "#d1495b", "width": 2},
        hoverinfo="skip",
    )
    points = go.Scatter(
        name="layers",
        x=places,
        y=rates,
        mode="markers",
        marker={
            "size": 11,
            "color": UNIT_COLOURS["host_read"],
            "symbol": ["triangle-right" if value is None else "circle" for value in found],
            "line": {"width": 1, "color": "white"},
        },
        hovertext=[
            f"{layer.name}<br>{_intensity(value)}<br>{rate:,.1f} multiply-adds per cycle, {rate / array:.1%} of all"
            f"<br>{limit_in_words(layer)}"
            for layer, value, rate in zip(shown, found, rates, strict=True)
        ],
        hoverinfo="text",
    )
    return _figure(
        [ceiling, points],
        height=420,
        legend=_LEGEND,
        xaxis={"type": "log", "title": {"text": "multiply-adds per byte of weights"}, "automargin": True, **_DIGITS},
        yaxis={"type": "log", "title": {"text": "multiply-adds per cycle"}, "automargin": True, **_DIGITS},
    )


_DIGITS = {"dtick": "D2", "exponentformat": "power"}


def _intensity(value: float | None) -> str:
    return "no weights from memory" if value is None else f"{value:,.1f} multiply-adds per byte of weights"


def occupancy_chart(profile: Profile, points: int) -> dict[str, Any]:
    """Live rows of the unified buffer over time, at most so many points, below the number of rows that there are."""
    shown = profile.occupancy.at_most(points)
    cycles, rows = [*shown.cycle.tolist(), profile.timeline.cycles], [*shown.rows.tolist(), 0]
    live = go.Scatter(
        name="live rows",
        x=cycles,
        y=rows,
        mode="lines",
        line={"shape": "hv", "color": UNIT_COLOURS["host_write"], "width": 1.5},
        fill="tozeroy",
        hovertemplate="%{y:,} rows from cycle %{x:,}<extra></extra>",
    )
    ceiling = go.Scatter(
        name=f"all {shown.available:,} rows",
        x=[0, profile.timeline.cycles],
        y=[shown.available] * 2,
        mode="lines",
        line={"color": "#d1495b", "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    return _figure(
        [live, ceiling],
        height=300,
        legend=_LEGEND,
        xaxis={"title": {"text": "cycle"}, "range": [0, profile.timeline.cycles], "automargin": True},
        yaxis={"title": {"text": "rows"}, "rangemode": "tozero", "fixedrange": True, "automargin": True},
    )
