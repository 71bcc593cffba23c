#!/usr/bin/env python3
"""Run random programs in lockstep on the Verilated device and the interpreter, and compare everything.

    scripts/lockstep.py --count 2000 --sizes 2,4,8,16 --seed 1

Every size comes in several variants, each a build of its own. Exit status 1 when a program differed: each one is shrunk
and printed as assembly, with the command that runs it again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from openmxu.sim.lockstep import Case, Failure, cases, configurations
from openmxu.sim.lockstep.campaign import check, verilated_device

_VARIANTS = range(len(configurations(2)))


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
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=options.count)
        configs = [configurations(size)[variant] for variant in options.variants for size in options.sizes]
        for case in cases(options.seed, options.count, configs):
            progress.update(task, description=f"seed {case.seed}, size {case.config.size}, {len(failures)} differ")
            run[case.config.size] += 1
            instructions += len(case.instructions)
            faults += len(case.faults())
            if failure := check(case, verilated_device):
                failures.append(failure)
                text = f"{failure.report}\n# again: {_command(case)}\n"
                progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
                if len(failures) == options.stop_after:
                    break
            progress.advance(task)
    sizes = ", ".join(f"{count} at size {size}" for size, count in sorted(run.items()))
    console.print(
        f"{run.total()} programs run ({sizes}), {instructions} instructions, {faults} faults; "
        f"differences: {len(failures)}",
        highlight=False,
        soft_wrap=True,
    )
    return 1 if failures else 0


def _command(case: Case) -> str:
    size = case.config.size
    variant = configurations(size).index(case.config)
    return f"scripts/lockstep.py --seed {case.seed} --count 1 --sizes {size} --variants {variant}"


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
