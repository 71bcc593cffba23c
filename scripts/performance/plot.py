"""A picture of what was measured: how close products and networks come to their roofline."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.performance.measure import NETWORKS, Measured

__all__ = ["picture"]

_COLORS = {8: "#1b6ca8", 16: "#c8553d", 32: "#4c8c4a"}
_LINES = {4: "-", 100: ":"}


def picture(found: Sequence[Measured]) -> bytes:
    """Products over their multiply-adds, and networks, as SVG; the same bytes for the same numbers."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    products, networks = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
    _products(products, [item for item in found if item.name.startswith("gemm")])
    _networks(networks, [item for item in found if item.name in NETWORKS])
    products.set_ylabel("bound ÷ cycles")
    products.set_ylim(0, 1.05)
    for axes in (products, networks):
        axes.grid(axis="y", alpha=0.3)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "openmxu", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _products(axes: Axes, found: Sequence[Measured]) -> None:
    for size, color in _COLORS.items():
        for latency, line in _LINES.items():
            own = [item for item in found if (item.size, item.latency) == (size, latency)]
            points = sorted((_work(item), item.ratio) for item in own)
            if points:
                axes.plot(*zip(*points, strict=True), line, marker="o", color=color, label=f"S = {size}, {latency}")
    axes.set_xscale("log")
    axes.set_xlabel("multiply-adds ÷ S²: the cycles of a full array")
    axes.set_title("matrix products")
    axes.legend(title="size, memory latency", fontsize="small")


def _networks(axes: Axes, found: Sequence[Measured]) -> None:
    sizes = sorted({item.size for item in found})
    width = 0.8 / max(1, len(sizes))
    for number, size in enumerate(sizes):
        ratios = {item.name: item.ratio for item in found if item.size == size}
        places = [index + (number + 0.5) * width - 0.4 for index in range(len(NETWORKS))]
        heights = [ratios.get(name, 0) for name in NETWORKS]
        axes.bar(places, heights, width, color=_COLORS[size], label=f"S = {size}")
    axes.set_xticks(range(len(NETWORKS)), NETWORKS, rotation=30, ha="right")
    axes.set_title("networks, batch 8")
    axes.legend(fontsize="small", loc="lower right")


def _work(item: Measured) -> float:
    """Multiply-adds of a product for each element of the array."""
    return math.prod(map(int, item.name.split()[1:])) / item.size**2
