#!/usr/bin/env python3
"""Place the core in several sizes on several parts, and write the table of docs/fpga.md.

    python scripts/fpga_sweep.py                   # all rows that are out of date
    python scripts/fpga_sweep.py s8 ulx3s_85f      # these
    python scripts/fpga_sweep.py --list
    python scripts/fpga_sweep.py s8 --compare      # against the committed table, which stays as it is

Each figure is the median of three seeds. Designs that do not fit have rows, too. A row whose hardware, tools and seeds
are those of the committed result is not placed again, unless --again or --compare says so. Exit status 1 when a tool
fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import implement
from scripts.fpga.sweep.results import key_of, moved, read_results, result_of, write_results
from scripts.fpga.sweep.rows import SEEDS, Row, find_rows
from scripts.fpga.sweep.table import write_document

STEPS = 2 + len(SEEDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows; returns the exit status."""
    options = _options(arguments)
    try:
        rows = find_rows(options.rows)
        committed = read_results()
        if options.list:
            for row in rows:
                print(f"{row.name:20} {_state(row, committed.get(row.name))}")
            return 0
        return _run(options, rows, committed)
    except (FlowError, ValueError, OSError) as error:
        print(f"fpga_sweep: error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, rows: Sequence[Row], committed: dict[str, Any]) -> int:
    failed = False
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(rows) * STEPS)
        for number, row in enumerate(rows):
            progress.update(task, completed=number * STEPS, description=f"{row.name}: Verilog")

            def say(step: str, name: str = row.name) -> None:
                progress.update(task, advance=0 if step == "synthesis" else 1, description=f"{name}: {step}")
                if not console.is_terminal:
                    print(f"{name}: {step}", file=sys.stderr, flush=True)

            old = committed.get(row.name)
            try:
                new = _result(row, old, options, say)
            except FlowError as error:
                # Continue with the other rows.
                failed = True
                console.print(f"fpga_sweep: error: {row.name}: {error}", markup=False, highlight=False)
                continue
            for line in _summary(row, old, new, options.percent):
                print(line, flush=True)
            if not options.compare:
                # Write after each row, so that an interrupted sweep keeps its results.
                committed[row.name] = new
                write_results(committed)
                write_document(read_results())
    return 1 if failed else 0


def _result(
    row: Row, old: dict[str, Any] | None, options: argparse.Namespace, say: Callable[[str], None]
) -> dict[str, Any]:
    source, frequency = row.source()
    key = key_of(source, frequency)
    if old is not None and old["key"] == key and not (options.again or options.compare):
        return old
    made = implement(source, row.folder(options.output), seeds=SEEDS, frequency=frequency, say=say)
    for error in made.report["errors"]:
        raise FlowError(error)
    return result_of(made.report, key)


def _summary(row: Row, old: dict[str, Any] | None, new: dict[str, Any], percent: float) -> list[str]:
    if new is old:
        return [f"{row.name}: up to date"]
    return list(moved(row, old, new, percent)) or [f"{row.name}: nothing moved by more than {percent:g} %"]


def _state(row: Row, old: dict[str, Any] | None) -> str:
    if old is None:
        return "never placed"
    return "up to date" if old["key"] == key_of(*row.source()) else "the hardware or a tool has changed since"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    parser.add_argument("--list", action="store_true", help="say which rows there are, and which are up to date")
    parser.add_argument("--compare", action="store_true", help="place them all, write nothing, say what has moved")
    parser.add_argument("--percent", type=float, default=5.0, help="by more than this (default %(default)g)")
    parser.add_argument("--again", action="store_true", help="also rows that are up to date")
    parser.add_argument("--output", type=Path, default=Path("build/synthesis"), help="folder (default %(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
