"""Plant single faults in the netlist of the core, and count those that the test suite's programs notice.

    python -m scripts.mutation --count 600 --seed 1

Every unit of openmxu.rtl gets faults in proportion to its number of cells. For each fault, a separate process runs the
suite's checks on the simulated core of that configuration, up to the first one that fails: on all cores, or on the
workers of a cluster. Exit status 1 below the required share.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from openmxu.cluster import Workers, add_worker_options, chosen_workers
from openmxu.sim.verilator import BuildError, MissingToolError
from scripts.fpga.errors import FlowError
from scripts.mutation.arguments import Arguments
from scripts.mutation.bench import Verdict, run
from scripts.mutation.equivalence import has_no_effect
from scripts.mutation.netlist import Mutant, Planted, plant
from scripts.mutation.report import Report
from scripts.mutation.verdicts import append_verdict, read_verdicts, without
from tb.core_checks import Check, checks, configurations

VERDICTS = "verdicts.tsv"
"""The file of verdicts in the folder of each netlist."""

LEAST = 9
"""Minimum number of faults in each unit, over all configurations."""


def main() -> int:
    options = _parse_options()
    console = Console(stderr=True)
    try:
        with chosen_workers(options) as workers:
            results = _run(options, console, workers)
            proved = _proved(results, workers) if options.prove else set()
        report = Report(options.count, options.seed, results, proved, Arguments())
    except (BuildError, MissingToolError, FlowError) as error:
        print(f"mutation: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report.as_dict(), indent=1) if options.json else report)
    if report.effective_share < options.require / 100:
        print(f"mutation: error: {report.effective_share:.2%} is below {options.require} %", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace, console: Console, workers: Workers) -> list[tuple[Planted, list[Verdict]]]:
    configs = configurations(options.sizes)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    results = []
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        for config in configs:
            task = progress.add_task(f"S = {config.size}: planting", total=None)
            directory = options.output / f"S{config.size}"
            directory.mkdir(parents=True, exist_ok=True)
            planted = plant(config, options.count // len(configs), -(-LEAST // len(configs)), options.seed, directory)
            mutants = [mutant for mutant in planted.mutants if _is_wanted(options, config.size, mutant)]
            path = directory / VERDICTS
            # A run that was stopped has no verdicts of the last sizes.
            goes_on = options.again or options.resume
            is_known = options.report or (goes_on and path.exists())
            known = read_verdicts(path, mutants) if is_known else []
            if options.again:
                known = [verdict for verdict in known if verdict.check]
            if goes_on:
                mutants = without(mutants, known)
            if options.report and (missing := without(mutants, known)):
                raise FlowError(f"{path}: no verdict on {len(missing)} faults; run with --resume first")
            if options.report or not mutants:
                results.append((planted, known))
                continue
            progress.update(task, description=f"S = {config.size}: building")
            seconds = _check_original(planted, checks(config))
            show = functools.partial(_show, progress, task, f"S = {config.size}", Counter(), path)
            path.write_text("")
            for verdict in known:
                append_verdict(path, verdict)
            progress.update(task, total=len(mutants), description=f"S = {config.size}")
            found = run(planted, mutants, seconds, workers, show)
            results.append((planted, sorted(known + found, key=lambda verdict: verdict.mutant.number)))
    return results


def _proved(results: list[tuple[Planted, list[Verdict]]], workers: Workers) -> set[tuple[int, int]]:
    """Array size and number of the survivors that are proved to have no effect."""
    netlists = {planted.config.size: planted for planted, _ in results}
    survivors = [
        (planted.config.size, verdict.mutant)
        for planted, verdicts in results
        for verdict in verdicts
        if not verdict.check
    ]
    proofs = workers.in_order(has_no_effect, survivors, netlists)
    return {(size, mutant.number) for (size, mutant), proved in zip(survivors, proofs, strict=True) if proved}


def _is_wanted(options: argparse.Namespace, size: int, mutant: Mutant) -> bool:
    of_unit = not options.unit or mutant.unit in options.unit
    return of_unit and (not options.only or f"{size}:{mutant.number}" in options.only)


def _show(progress: Progress, task: TaskID, name: str, seen: Counter[bool], path: Path, verdict: Verdict) -> None:
    append_verdict(path, verdict)
    seen[verdict.check is None] += 1
    progress.update(task, advance=1, description=f"{name}: {seen[True]} survive")
    if not progress.console.is_terminal and seen.total() % 25 == 0:
        print(f"{name}: {seen.total()} done, {seen[True]} survive", file=sys.stderr, flush=True)


def _check_original(planted: Planted, every: Sequence[Check]) -> list[float]:
    """Check that the netlist without a fault passes every check, which also builds the model; returns the seconds of
    processor time of each."""
    seconds = []
    for check in every:
        start = time.process_time()
        if message := check.run({"design": planted.design}):
            raise FlowError(f"the netlist without a fault fails {check.name}: {message}")
        seconds.append(time.process_time() - start)
    return seconds


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.mutation",
        description=__doc__.partition("\n")[0],
        epilog="example: python -m scripts.mutation --unit scoreboard --count 1000 --sizes 4",
    )
    parser.add_argument("--count", type=int, default=600, help="faults, about (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of faults (default %(default)s)")
    parser.add_argument("--unit", action="append", help="only the faults of this unit; may be given several times")
    parser.add_argument("--only", action="append", help="only this fault, as SIZE:NUMBER; may be given several times")
    parser.add_argument(
        "--sizes",
        type=lambda text: tuple(map(int, text.split(","))),
        default=(2, 4, 8),
        help="array sizes, each an equal share of the faults (default 2,4,8)",
    )
    add_worker_options(parser)
    parser.add_argument("--require", type=float, default=95.0, help="percent to be noticed (default %(default)s)")
    parser.add_argument("--prove", action="store_true", help="try to prove that survivors have no effect")
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--again", action="store_true", help="keep the faults that the last run noticed, and run all others"
    )
    again.add_argument("--resume", action="store_true", help="keep all verdicts of a run that was stopped, and go on")
    again.add_argument(
        "--report", action="store_true", help="run nothing: report the last run's verdicts, with the present arguments"
    )
    parser.add_argument("--output", type=Path, default=Path("build/mutation"), help="folder of the netlists")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
