"""Output of commands: results on stdout, as text, as tables or as one JSON object, and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from openmxu.device import RunProgress
from openmxu.report_table import REPORT_HEADINGS, TEXT_HEADINGS, report_rows, report_title

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    from openmxu.comparison import Comparison
    from openmxu.reporting import Report

__all__ = ["print_comparison", "print_json", "print_report", "print_rows", "running", "table_console", "working"]


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


@contextmanager
def running(what: str) -> Iterator[RunProgress]:
    """Show the current activity and its duration on stderr if that is a terminal, and a bar with the percentage of the
    executions that have ended once the hook that this yields is called for one of several."""
    if not sys.stderr.isatty():
        yield lambda ended, count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    several = BarColumn(), TaskProgressColumn()
    one = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*one, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(ended: int, count: int) -> None:
            if count > 1:
                progress.columns = (*one[:2], *several, one[2])
                progress.update(task, total=count, completed=ended)

        yield show


_COLUMNS = REPORT_HEADINGS[1:]
"""Columns beside that of the name."""

_WIDTH = 220
"""Width of a line in characters when the output is a file or a pipe."""

_NAME_WIDTH = 16
"""Characters of names that have room in a line; longer ones may be folded."""

_GAP = 2
"""Blanks between columns."""


def table_console() -> Console:
    """Standard output for tables: as wide as the terminal, or a fixed width in a file or a pipe."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDTH)


def print_report(report: Report) -> None:
    """Print a line for each node that the host computes and each layer, and one for all layers together.

    Where the lines are too short for all columns, these are printed in several tables, one below the other.
    """
    rows = [[_text(value) for value in row] for row in report_rows(report)]
    console = table_console()
    room = console.width - min(_NAME_WIDTH, max(len(row[0]) for row in rows)) - _GAP
    cells = [max(len(row[number]) for row in rows) for number in range(1, len(_COLUMNS) + 1)]
    widths = [max(width, len(name)) for width, name in zip(cells, _COLUMNS, strict=True)]
    if len(_parts(widths, room)) > 1:  # then each word of a title has a line
        widths = [max(width, *map(len, name.split())) for width, name in zip(cells, _COLUMNS, strict=True)]
    console.print(report_title(report), style="italic", soft_wrap=True)
    for place, part in enumerate(_parts(widths, room)):
        if place:
            console.print()
        console.print(_table(rows, part, widths))


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Numbers of columns that have room beside each other."""
    parts: list[list[int]] = [[]]
    left = room
    for number, width in enumerate(widths):
        if parts[-1] and width + _GAP > left:
            parts.append([])
            left = room
        parts[-1].append(number)
        left -= width + _GAP
    return parts


def _table(rows: Sequence[Sequence[str]], columns: Sequence[int], widths: Sequence[int]) -> Table:
    """A table of names and some columns."""
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0))
    table.add_column("layer", overflow="fold")
    for number in columns:
        # Only names may be folded: half a number would be another number.
        justify: JustifyMethod = "left" if _COLUMNS[number] in TEXT_HEADINGS else "right"
        table.add_column(_COLUMNS[number], justify=justify, width=widths[number])
    for row in rows:
        table.add_row(row[0], *(row[number + 1] for number in columns))
    return table


def _text(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


_FORMS = {"float": "float", "onnxruntime": "ONNX Runtime", "device": "device"}


def print_comparison(result: Comparison) -> None:
    """Print what differs, the accuracies, and a line for each layer."""
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
        table.add_column(column, justify="right", no_wrap=True)
    for layer in result.layers:
        ratio = "" if layer.sqnr is None else f"{layer.sqnr:.1f}"
        numbers = (f"{number:,}" for number in (layer.outputs, layer.differing, layer.ambiguous))
        table.add_row(layer.name, layer.kind, *numbers, ratio)
    typer.echo()
    table_console().print(table)
