"""``openmxu sweep``: cycles of networks on many configurations."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from openmxu.cli.errors import InputError, RunError
from openmxu.cli.files import STANDARD_STREAM, check_readable, check_writable, read_text, write_output
from openmxu.cli.networks import load_network
from openmxu.cli.options import JsonOption
from openmxu.cli.percentage import counting
from openmxu.cli.programs import naming
from openmxu.cli.report import print_json, print_rows, table_console, working
from openmxu.cli.spreading import SchedulerOption, WorkersOption, spreading
from openmxu.cluster import usable_cores

__all__ = ["sweep_command"]

_PRODUCT = re.compile(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)")
_JOURNAL = ".journal"
_MODULES = ("openmxu.sweep.measuring", "openmxu.compiler", "openmxu.sim.cycle_model")
_MOST_LINES = 50
"""Points up to which the table has all of them."""


def sweep_command(
    networks: Annotated[
        list[str] | None,
        typer.Argument(metavar="NETWORK...", help="A folder of examples/, an ONNX file, or a product as 64x512x64."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Networks and configurations as TOML; - is stdin."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUES",
            help="Values of a parameter of core or memories, as size=8,16 or memory_latency=4,100. May be repeated: "
            "all combinations are measured.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write.")] = Path(
        "sweep.csv"
    ),
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Cycles over multiply-adders: .html, .svg or .png."),
    ] = None,
    cost: Annotated[
        str,
        typer.Option("--cost", metavar="COLUMN", help="What the plot has cycles over: multiply_adders, logic_cells."),
    ] = "multiply_adders",
    batch: Annotated[
        int | None, typer.Option("--batch", metavar="N", min=1, help="Inputs of one execution. Default: 1.")
    ] = None,
    effort: Annotated[
        int | None,
        typer.Option(
            "--effort", metavar="N", min=0, help="As of openmxu compile. Default: 0, no search for fast schedules."
        ),
    ] = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Measure points again that an interrupted sweep has finished.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Predict the cycles of networks on many configurations, on all cores.

    A finished point is kept in FILE.journal at once: a sweep that was interrupted, however that was, continues when it
    is started again. A point that cannot be compiled becomes a row with an error. The file is the same on any number of
    workers.
    """
    from openmxu import sweep

    settings = _settings(networks or [], source, parameters or [], batch, effort)
    _check_outputs(output, plot, cost)
    with working("Reading networks"):
        loaded = {name: _load(name, source) for name in settings.networks}
    points = sweep.points_of(settings)
    journal_path = output.with_name(output.name + _JOURNAL)
    if not journal_path.exists():
        check_writable(journal_path)
    began = time.perf_counter()
    with sweep.Journal(journal_path, restart=restart) as journal:
        known = len(journal.results)
        if known:
            typer.echo(f"openmxu: {journal_path} has {known} finished points of an interrupted sweep", err=True)
        default = min(usable_cores(), len(points))
        with spreading(workers, scheduler, _MODULES, default) as opened, counting("Sweeping", len(points)) as finished:
            rows = sweep.measured_points(points, loaded, opened, journal, finished)
        measured = len(journal.results) - known
    write_output(output, _csv(rows, sweep.COLUMNS))
    varied = _varied(settings.configurations)
    if plot is not None:
        _plot(plot, rows, cost, varied)
    journal_path.unlink()
    failed = sum(row["error"] is not None for row in rows)
    if json:
        names = {"output": str(output), "plot": None if plot is None else str(plot)}
        numbers = {"points": len(rows), "measured": measured, "resumed": known, "errors": failed}
        print_json(names | numbers | {"seconds": time.perf_counter() - began})
        return
    _print_table(rows, sweep.is_best(rows), varied)
    lines = [("points", f"{len(rows):,}, of which {failed:,} cannot be compiled"), ("rows", str(output))]
    print_rows([*lines, *([] if plot is None else [("plot", str(plot))])])


def _settings(
    networks: Sequence[str], source: Path | None, parameters: Sequence[str], batch: int | None, effort: int | None
) -> Any:
    """What file and options say together; options change each configuration of the file."""
    from openmxu.sweep import Settings, SweepError, expanded, read_settings

    settings = Settings((), None, None, ())
    if source is not None:
        try:
            settings = read_settings(read_text(source))
        except SweepError as error:
            raise InputError(f"{source}: {error}") from None
    table: dict[str, list[int | str]] = {}
    for item in parameters:
        name, sign, text = item.partition("=")
        if not sign:
            raise InputError(f"--set must be NAME=VALUES, as in size=8,16, not {item!r}")
        table[name] = [int(value) if re.fullmatch(r"-?\d+", value) else value for value in text.split(",")]
    try:
        changes = expanded(table)
    except SweepError as error:
        raise InputError(f"--set: {error}") from None
    found = dataclasses.replace(
        settings,
        networks=tuple(dict.fromkeys((*settings.networks, *networks))),
        batch=batch or settings.batch or 1,
        effort=settings.effort if effort is None else effort,
        configurations=tuple({**one, **change} for one in settings.configurations or ({},) for change in changes),
    )
    if not found.networks:
        raise InputError("there is nothing to sweep; name a network, or give --file FILE with networks")
    return found


def _check_outputs(output: Path, plot: Path | None, cost: str) -> None:
    from openmxu.sweep.plot import COSTS, FORMATS

    if output == STANDARD_STREAM:
        raise InputError("a sweep continues beside its file; --output needs the name of one")
    check_writable(output)
    if cost not in COSTS:
        raise InputError(f"--cost must be {' or '.join(COSTS)}, not {cost!r}")
    if plot is not None:
        if plot.suffix not in FORMATS:
            raise InputError(f"--plot must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not in {plot.suffix!r}")
        check_writable(plot)


def _load(name: str, source: Path | None) -> Any:
    """The network of a name; files are looked for beside the sweep's."""
    from openmxu.compiler.onnx.model_file import load_model
    from openmxu.sweep import Model, Product

    if match := _PRODUCT.fullmatch(name):
        return Product(*map(int, match.groups()))
    if not name.endswith(".onnx"):
        return Model(load_network(name).model().SerializeToString(deterministic=True))
    path = Path(name) if source is None or Path(name).exists() else source.parent / name
    check_readable(path)
    with naming(path):
        return Model(load_model(path).SerializeToString(deterministic=True))


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


_COLUMN_OF = {"bus_bytes": "host_data_bytes", "preset": "size"}
"""Columns that show a parameter which is no column."""


def _varied(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of parameters of which not all configurations have the same value."""
    names = dict.fromkeys(name for values in configurations for name in values)
    varied = (name for name in names if len({values.get(name) for values in configurations}) > 1)
    return list(dict.fromkeys(_COLUMN_OF.get(name, name) for name in varied))


def _plot(path: Path, rows: Sequence[Mapping[str, Any]], cost: str, varied: Sequence[str]) -> None:
    from openmxu.sweep.plot import page, picture

    try:
        contents = page(rows, cost, varied) if path.suffix == ".html" else picture(rows, cost, path.suffix)
    except ImportError as error:
        extra = "'openmxu[profile]'" if path.suffix == ".html" else "matplotlib"
        raise RunError(f"a plot in {path.suffix} needs {error.name}: install it with: pip install {extra}") from None
    write_output(path, contents)


_NUMBERS = ("cycles", "utilization", "bound_ratio", "host bytes", "weight_bytes", "logic_cells")


def _print_table(rows: Sequence[Mapping[str, Any]], best: Sequence[bool], varied: Sequence[str]) -> None:
    """Print all points, or those that no other beats if there are many."""
    from rich.table import Table

    shown = [(row, wins) for row, wins in zip(rows, best, strict=True) if wins or len(rows) <= _MOST_LINES]
    titles = list(dict.fromkeys(("network", *varied)))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in titles:
        table.add_column(name.replace("_", " "), overflow="fold")
    for name in _NUMBERS:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("limited by", overflow="fold")
    table.add_column("best")
    for row, wins in shown:
        cells = ["" if row[name] is None else str(row[name]) for name in titles]
        if row["error"] is not None:
            table.add_row(*cells, *[""] * len(_NUMBERS), row["error"])
            continue
        logic = "" if row["logic_cells"] is None else f"{row['logic_cells']:,}"
        numbers = (f"{row['utilization']:.3f}", f"{row['bound_ratio']:.3f}")
        sizes = (f"{row['host_read_bytes'] + row['host_write_bytes']:,}", f"{row['weight_bytes']:,}")
        table.add_row(*cells, f"{row['cycles']:,}", *numbers, *sizes, logic, row["limit"], "*" if wins else "")
    table_console().print(table)
    if len(shown) < len(rows):
        typer.echo("Only points that no other beats in both cycles and multiply-adders; the file has all of them.")
    typer.echo()
