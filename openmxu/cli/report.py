"""Output of commands: results on stdout, as text, as tables or as one JSON object, and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from openmxu.reporting import LayerReport, Report

if TYPE_CHECKING:
    from openmxu.comparison import Comparison

__all__ = ["print_comparison", "print_json", "print_report", "print_rows", "working"]


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    typer.echo(json.dumps(result, allow_nan=False))


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        typer.echo(f"{name:<{width}}  {value}")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show the current activity and its duration on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        yield


_COLUMNS = (
    "instructions",
    "cycles",
    "bound",
    "÷ cycles",
    "multiply-adds",
    "utilization",
    "host read bytes",
    "host write bytes",
    "weight bytes",
    "buffer rows",
)
"""Columns that hold numbers."""

_WIDTH = 200
"""Width of a line in characters when the output is a file or a pipe."""


def print_report(report: Report) -> None:
    """Print a line for each node that the host computes and each layer, and one for all layers together."""
    from rich.console import Console
    from rich.table import Table

    rates = (("host", report.host_rate), ("weights", report.weight_rate))
    limits = "".join(f", {name} at {float(rate):g} bytes/cycle" for name, rate in rates if rate is not None)
    table = Table(
        title=f"Predicted: array of {report.size} × {report.size}, batch of {report.batch}, memory latency of "
        f"{report.memory_latency} cycles{limits}",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("layer", overflow="fold")
    table.add_column("kind", overflow="fold")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    table.add_column("limited by")
    layers = iter(report.layers)
    for segment in report.segments:
        for node in segment.nodes:
            if segment.where == "host":
                table.add_row(node, "host")
            else:
                table.add_row(*_cells(next(layers)))
    table.add_row(*_cells(report.total))
    Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(table)


def _cells(layer: LayerReport) -> list[str]:
    numbers = (layer.host_read_bytes, layer.host_write_bytes, layer.weight_bytes, layer.unified_buffer_rows)
    return [
        layer.name,
        layer.kind,
        *(f"{number:,}" for number in (layer.instructions, layer.cycles, layer.bound)),
        f"{layer.bound_ratio:.3f}",
        f"{layer.multiply_adds:,}",
        f"{layer.utilization:.3f}",
        *(f"{number:,}" for number in numbers),
        layer.limit,
    ]


_FORMS = {"float": "float", "onnxruntime": "ONNX Runtime", "device": "device"}


def print_comparison(result: Comparison) -> None:
    """Print what differs, the accuracies, and a line for each layer."""
    from rich.console import Console
    from rich.table import Table

    equal = f"{result.outputs - result.differing:,} of {result.outputs:,} numbers are ONNX Runtime's"
    rows = [("inputs", f"{result.elements:,}"), ("outputs", equal)]
    if result.differing:
        rows += [("largest difference", f"{result.largest:g}"), ("because", result.reason)]
    if result.accuracy:
        rows.append(("accuracy", ", ".join(f"{_FORMS[form]} {value:.4f}" for form, value in result.accuracy.items())))
    if result.layers is None:
        rows.append(("layers", "cannot be taken out of a model whose batch is folded into other dimensions"))
    else:
        rows.append(("first layer that differs", "none" if result.first is None else result.first.name))
    print_rows(rows)
    if not result.layers:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("layer", "operators"):
        table.add_column(column, overflow="fold")
    for column in ("outputs", "differ", "of two", "SQNR in dB"):
        table.add_column(column, justify="right")
    for layer in result.layers:
        ratio = "" if layer.sqnr is None else f"{layer.sqnr:.1f}"
        numbers = (f"{number:,}" for number in (layer.outputs, layer.differing, layer.ambiguous))
        table.add_row(layer.name, layer.kind, *numbers, ratio)
    typer.echo()
    Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(table)
