"""Give the tools damaged files, many of each kind.

    python -m scripts.fuzz                       # 20,000 files
    python -m scripts.fuzz --kind "model surgery" --case 17   # one of them again

A worker that takes longer than ten seconds for a file is stopped, and one that takes more than 8 GiB is refused memory;
both are failures, and so is every error that is not one line of openmxu's own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import traceback
from collections import Counter
from multiprocessing.connection import Connection

from scripts.fuzz.cases import KINDS, try_case

_SECONDS = 10
_MEMORY = 8 << 30
_WORKERS = 2


def _work(kind: str, seeds: list[int], connection: Connection) -> None:
    """Try some files, and report each one before it begins and after it has ended."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for seed in seeds:
        connection.send((seed, None))
        try:
            connection.send((seed, try_case(kind, seed)))
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            connection.send((seed, f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"))
    connection.close()


def _run(kind: str, seeds: list[int], outcomes: Counter[str], failures: list[str]) -> None:
    """Try all files of a kind in workers, each with its share."""
    waiting = [seeds[number::_WORKERS] for number in range(_WORKERS)]
    context = multiprocessing.get_context("fork")
    running: list[tuple[multiprocessing.process.BaseProcess, Connection, list[int]]] = []

    def start(left: list[int]) -> None:
        if left:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(kind, left, sender), daemon=True)
            process.start()
            sender.close()
            running.append((process, receiver, left))

    for left in waiting:
        start(left)
    while running:
        process, receiver, left = running.pop(0)
        outcome, seed = None, left[0]
        try:
            if not receiver.poll(_SECONDS):
                outcome = f"no answer within {_SECONDS} seconds"
            else:
                seed, outcome = receiver.recv()
                if outcome is None:
                    outcome = receiver.recv()[1] if receiver.poll(_SECONDS) else f"no answer within {_SECONDS} seconds"
        except EOFError:
            process.join()
            outcome = f"the process ended with status {process.exitcode}"
        rest = left[left.index(seed) + 1 :]
        if outcome in ("refused", "right"):
            outcomes[outcome] += 1
        else:
            outcomes["failed"] += 1
            failures.append(f"{kind}, --case {seed}: {outcome}")
        if process.is_alive() and outcome is not None and not outcome.startswith("no answer"):
            if rest:
                running.append((process, receiver, rest))
            else:
                process.join()
        else:
            process.kill()
            process.join()
            start(rest)


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="files, of all kinds together")
    parser.add_argument("--kind", choices=KINDS, action="append", help="may be given several times; default all")
    parser.add_argument("--case", type=int, help="try this file alone, here")
    options = parser.parse_args(arguments)
    kinds = options.kind or list(KINDS)
    if options.case is not None:
        print(try_case(kinds[0], options.case))
        return 0
    failures: list[str] = []
    for kind in kinds:
        outcomes: Counter[str] = Counter()
        _run(kind, list(range(options.count // len(kinds))), outcomes, failures)
        counts = ", ".join(f"{outcomes[name]:,} {name}" for name in ("refused", "right", "failed"))
        print(f"{kind:16}{outcomes.total():8,}: {counts}", flush=True)
    for failure in failures:
        print(failure[:300])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
