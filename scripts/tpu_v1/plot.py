"""Pictures: utilization over the shape of products, and square products beside a CPU."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.tpu_v1.square import Product
from scripts.tpu_v1.utilization import SIZES

__all__ = ["square_picture", "utilization_picture"]

_COLORS = ("#1b6ca8", "#c8553d", "#4c8c4a", "#8a5a9e", "#b8860b", "#444444")


def utilization_picture(found: Mapping[tuple[int, int], float]) -> bytes:
    """Utilization over the length of products, a line for each size of the array, as SVG.

    Parameters
    ----------
    found
        By size of the array and length of the product.
    """
    figure, axes = _figure()
    for size, color in zip(SIZES, _COLORS, strict=True):
        points = sorted((length, value) for (own, length), value in found.items() if own == size)
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", color=color, label=str(size))
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("utilization")
    axes.legend(title="S", fontsize="small")
    return _svg(figure, axes, sorted({length for _, length in found}))


def square_picture(found: Sequence[Product]) -> bytes:
    """Operations per second over the length of products, as SVG."""
    figure, axes = _figure()
    for name, color in zip(("tpu_v1", "numpy float32", "numpy int8"), _COLORS, strict=False):
        points = [(item.length, item.rates[name]) for item in found]
        axes.plot(*zip(*points, strict=True), marker="o", color=color, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("operations per second")
    axes.legend(fontsize="small")
    return _svg(figure, axes, [item.length for item in found])


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Figure, axes: Axes, lengths: Sequence[int]) -> bytes:
    """The picture of products of these lengths; the same bytes for the same numbers."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [f"{length}³" for length in lengths])
    axes.set_xlabel("N × N × N")
    axes.grid(axis="y", alpha=0.3)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "openmxu", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
