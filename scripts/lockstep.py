#!/usr/bin/env python3
"""Run random programs in lockstep on the Verilated device and the interpreter, and compare everything.

    scripts/lockstep.py --count 5000 --sizes 2,4,8,16 --seed 1 --coverage-report build/coverage.md

Every size comes in several variants, each a separate build. Functional coverage of the programs is counted; bins that
were not reached are listed. Exit status 1 when a program differed: each one is shrunk and printed as assembly, with the
command that runs it again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from openmxu.cluster import add_worker_options, chosen_workers
from tb.lockstep import Failure, configurations
from tb.lockstep.campaign import Result, run_seed
from tb.lockstep.coverage import Coverage, declare

_VARIANTS = range(len(configurations(2)))
_SHOWN_BINS = 20


def main() -> int:
    options = _parse_options()
    console = Console()
    failures: list[Failure] = []
    run: Counter[int] = Counter()
    instructions = faults = 0
    columns = (
        TextColumn("lockstep"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    configs = [configurations(size)[variant] for variant in options.variants for size in options.sizes]
    coverage = declare(configs)
    work = ((options.seed + number, configs[number % len(configs)]) for number in range(options.count))
    with chosen_workers(options) as workers, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=options.count)
        for result in workers.in_order(run_seed, work, None):
            size = result.config.size
            run[size] += 1
            instructions += result.instructions
            faults += result.faults
            coverage.add(result.hits)
            if result.failure:
                failures.append(result.failure)
                text = f"{result.failure.report}\n# again: {_command(result)}\n"
                progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
                if len(failures) == options.stop_after:
                    break
            progress.update(task, advance=1, description=f"seed {result.seed}, size {size}, {len(failures)} differ")
    sizes = ", ".join(f"{count} at size {size}" for size, count in sorted(run.items()))
    console.print(
        f"{run.total()} programs run ({sizes}), {instructions} instructions, {faults} faults; "
        f"differences: {len(failures)}",
        highlight=False,
        soft_wrap=True,
    )
    _report(
        coverage, f"Functional coverage of {run.total()} random programs from seed {options.seed} on", options, console
    )
    return 1 if failures else 0


def _report(coverage: Coverage, title: str, options: argparse.Namespace, console: Console) -> None:
    """Print the coverage; write the full report if requested."""
    unreached = coverage.unreached()
    lines = [coverage.summary(), *(f"  not reached: {group}: {name}" for group, name in unreached[:_SHOWN_BINS])]
    if len(unreached) > _SHOWN_BINS:
        lines.append(f"  and {len(unreached) - _SHOWN_BINS} more")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    if path := options.coverage_report:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(coverage.as_json() if path.suffix == ".json" else coverage.as_markdown(title), encoding="utf-8")


def _command(result: Result) -> str:
    size = result.config.size
    variant = configurations(size).index(result.config)
    return f"scripts/lockstep.py --seed {result.seed} --count 1 --sizes {size} --variants {variant}"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog="example: scripts/lockstep.py --count 200 --sizes 8 --seed 7"
    )
    parser.add_argument("--count", type=_positive, default=2000, help="random programs to run (default %(default)s)")
    parser.add_argument("--seed", type=_natural, default=1, help="seed of the first program (default %(default)s)")
    parser.add_argument(
        "--sizes", type=_sizes, default=(2, 4, 8, 16), help="array sizes, separated by commas (default 2,4,8,16)"
    )
    parser.add_argument(
        "--variants",
        type=_variants,
        default=tuple(_VARIANTS),
        help="variants of each size (default all)",
    )
    add_worker_options(parser)
    parser.add_argument(
        "--coverage-report", type=Path, metavar="FILE", help="write all bins to a file: .json, or else Markdown"
    )
    parser.add_argument(
        "--stop-after", type=_positive, default=3, help="differences after which to stop (default %(default)s)"
    )
    return parser.parse_args()


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number from 0, not {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return int(text)


def _sizes(text: str) -> tuple[int, ...]:
    return _some_of([2**exponent for exponent in range(1, 9)], text)


def _variants(text: str) -> tuple[int, ...]:
    return _some_of(_VARIANTS, text)


def _some_of(possible: Sequence[int], text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) if part.strip().isdecimal() else -1 for part in text.split(","))
    if not set(numbers) <= set(possible):
        raise argparse.ArgumentTypeError(f"must be some of {', '.join(map(str, possible))}, not {text!r}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
