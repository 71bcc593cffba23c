"""Give the tools damaged files, many of each kind.

    python -m scripts.fuzz                       # 20,000 files
    python -m scripts.fuzz --kind "model surgery" --case 17   # one of them again
    python -m scripts.fuzz --workers 1           # otherwise on all cores

A process that takes longer than ten seconds for a file is stopped, and one that takes more than 8 GiB is refused
memory; both are failures, and so is every error that is not one line of openmxu's own.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from openmxu.cluster import Workers, add_worker_options, chosen_workers
from scripts.fuzz.cases import KINDS, try_case
from scripts.fuzz.files import Files, Limits, try_files

__all__ = ["main", "try_kind"]

_TOGETHER = 100
"""Files of one task."""


def try_kind(kind: str, count: int, workers: Workers, limits: Limits) -> tuple[Counter[str], list[str]]:
    """Try the files of a kind: how many had each outcome, and a line for each failure."""
    parts = (Files(kind, range(first, min(first + _TOGETHER, count))) for first in range(0, count, _TOGETHER))
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    for results in workers.in_order(try_files, parts, limits):
        for seed, outcome in results:
            passed = outcome in ("refused", "right")
            outcomes[outcome if passed else "failed"] += 1
            if not passed:
                failures.append(f"{kind}, --case {seed}: {outcome}")
    return outcomes, failures


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="files, of all kinds together")
    parser.add_argument("--kind", choices=KINDS, action="append", help="may be given several times; default all")
    parser.add_argument("--case", type=int, help="try this file alone, here")
    add_worker_options(parser)
    options = parser.parse_args(arguments)
    kinds = options.kind or list(KINDS)
    if options.case is not None:
        print(try_case(kinds[0], options.case))
        return 0
    failures: list[str] = []
    with chosen_workers(options) as workers:
        for kind in kinds:
            outcomes, failed = try_kind(kind, options.count // len(kinds), workers, Limits())
            failures += failed
            counts = ", ".join(f"{outcomes[name]:,} {name}" for name in ("refused", "right", "failed"))
            print(f"{kind:16}{outcomes.total():8,}: {counts}", flush=True)
    for failure in failures:
        print(failure[:300])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
