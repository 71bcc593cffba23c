"""The picture of a sweep: for each network, cycles over multiply-adders or logic, with the best points joined."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openmxu.sweep.points import is_best

__all__ = ["COSTS", "FORMATS", "page", "picture"]

COSTS = {"multiply_adders": "multiply-adders", "logic_cells": "logic cells of an ECP5"}
"""Columns that the horizontal axis may have, with their titles."""

FORMATS = (".html", ".svg", ".png")
"""Endings of files: a page with plotly, or a picture with matplotlib."""

_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
_ACROSS = 3


@dataclass(frozen=True)
class _Series:
    """Points of one network that share their memories. ``front`` are the best of them in the order of their cost."""

    network: str
    memory: str
    color: str
    points: Sequence[Mapping[str, Any]]
    front: Sequence[Mapping[str, Any]]


def _series(rows: Sequence[Mapping[str, Any]], cost: str) -> dict[str, list[_Series]]:
    """By network."""
    shown = [row for row in rows if row["cycles"] is not None and row[cost] is not None]
    best = is_best(shown, cost)
    memories = list(dict.fromkeys(_memory(row) for row in shown))
    panels: dict[str, list[_Series]] = {}
    for network in dict.fromkeys(row["network"] for row in shown):
        for number, memory in enumerate(memories):
            own = [
                (row, wins)
                for row, wins in zip(shown, best, strict=True)
                if (row["network"], _memory(row)) == (network, memory)
            ]
            front = sorted((row for row, wins in own if wins), key=lambda row: row[cost])
            color = _COLORS[number % len(_COLORS)]
            panels.setdefault(network, []).append(_Series(network, memory, color, [row for row, _ in own], front))
    return panels


def _memory(row: Mapping[str, Any]) -> str:
    rates = [
        f"{row[name]} B/cycle {what}"
        for name, what in (("host_rate", "host"), ("weight_rate", "weights"))
        if row[name] is not None
    ]
    return ", ".join([f"memory latency {row['memory_latency']}", *rates])


def page(rows: Sequence[Mapping[str, Any]], cost: str, varied: Sequence[str]) -> bytes:
    """A self-contained HTML page with plotly; a point under the pointer shows the parameters ``varied``.

    Raises
    ------
    ImportError
        plotly is not installed.
    """
    from plotly.graph_objects import Figure, Scatter
    from plotly.subplots import make_subplots

    panels = _series(rows, cost)
    lines = max(1, math.ceil(len(panels) / _ACROSS))
    figure: Figure = make_subplots(lines, min(_ACROSS, max(1, len(panels))), subplot_titles=list(panels))
    for number, series in enumerate(panels.values()):
        place = {"row": number // _ACROSS + 1, "col": number % _ACROSS + 1}
        for one in series:
            common = {"name": one.memory, "legendgroup": one.memory, "line": {"color": one.color}}
            hover = ["<br>".join(f"{name} {row[name]}" for name in (*varied, "utilization")) for row in one.points]
            x, y = _columns(one.points, cost)
            figure.add_trace(Scatter(x=x, y=y, text=hover, mode="markers", showlegend=not number, **common), **place)
            x, y = _columns(one.front, cost)
            line = Scatter(x=x, y=y, mode="lines", showlegend=False, hoverinfo="skip", **common)
            figure.add_trace(line, **place)
    figure.update_xaxes(type="log", title=COSTS[cost])
    figure.update_yaxes(type="log", title="cycles")
    figure.update_layout(template="plotly_white", height=120 + 330 * lines, title="Cycles of each point of the sweep")
    return figure.to_html(include_plotlyjs=True, div_id="sweep").encode()


def picture(rows: Sequence[Mapping[str, Any]], cost: str, ending: str) -> bytes:
    """The same as a picture with matplotlib; ``ending`` is one of :data:`FORMATS`.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    panels = _series(rows, cost)
    lines, across = max(1, math.ceil(len(panels) / _ACROSS)), min(_ACROSS, max(1, len(panels)))
    figure = Figure(figsize=(3.4 * across, 2.6 * lines + 0.5), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (network, series) in zip(grid.flat, panels.items(), strict=False):
        for one in series:
            axes.scatter(*_columns(one.points, cost), s=9, color=one.color, alpha=0.6, linewidths=0)
            axes.plot(*_columns(one.front, cost), color=one.color, linewidth=1, label=one.memory)
        axes.set_title(network, fontsize=9)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel(COSTS[cost], fontsize=8)
        axes.set_ylabel("cycles", fontsize=8)
        axes.tick_params(which="both", labelsize=7)
        axes.grid(alpha=0.3)
    if panels:
        handles, names = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=8)
    contents = io.BytesIO()
    metadata = {"Date": None} if ending == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "openmxu", "svg.fonttype": "none"}):
        figure.savefig(contents, format=ending[1:], metadata=metadata, dpi=150)
    return contents.getvalue()


def _columns(rows: Sequence[Mapping[str, Any]], cost: str) -> tuple[list[Any], list[Any]]:
    return [row[cost] for row in rows], [row["cycles"] for row in rows]
