"""Whether a network gets slower where a core has more of something: predicted by the cycle model.

    python -m scripts.performance.resources
    python -m scripts.performance.resources --size 8 --network mnist --resource weight_fifo_tiles
    python -m scripts.performance.resources --write

Every other parameter is the default of the size. A program is for near and for far memories, so what counts are its
cycles with a memory latency of 4 and with one of 100 together, as in the compiler's search. Exit status 1 when a
network is slower by more than 0.1 %, which is what the cycle model may be off; the largest differences, also those with
one latency alone, are printed in any case. A compilation takes up to some minutes, and all of them take hours: those
that are done are kept in docs/resources.jsonl, for the next run with the same compiler and cycle model. ``--write``
puts a table of them into docs/performance.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import openmxu
import openmxu.arch
import openmxu.compiler
import openmxu.sim.cycle_model
from openmxu.cli.networks import load_network, network_names
from openmxu.cluster import add_worker_options, chosen_workers
from openmxu.program_file import write_atomically
from openmxu.rtl import activation, buffer, common, dispatch, host, matrix
from openmxu.sweep import Journal
from scripts.docs.sections import with_section
from scripts.performance.measure import BATCH, LATENCIES, NETWORKS, predicted_cycles

SIZES = (8, 16)
_CHOICES = (*SIZES, 32, 64, 128, 256)
"""Sizes that have each number of lanes in :data:`RESOURCES`."""

LIMIT = 0.001

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"

KEPT = DOCUMENT.with_name("resources.jsonl")
"""The journal of what is done."""

_SOURCES = (
    *(openmxu.arch, openmxu.compiler, openmxu.sim.cycle_model),
    *(activation, buffer, common, dispatch, host, matrix),
)
"""What cycles depend on, beside the networks: the cycle model takes latencies from these units of the RTL."""

RESOURCES = {
    "host_data_bytes": (4, 8, 16, 32),
    "weight_data_bytes": (4, 8, 16, 32),
    "activation_lanes": (1, 2, 4, 8),
    "weight_fifo_tiles": (4, 8, 16, 32, 64),
    "weight_queue_depth": (2, 4, 8),
    "unified_buffer_rows": (2048, 4096, 8192, 16384, 32768),
    "accumulator_rows": (256, 512, 1024, 2048, 4096, 8192),
    "parameter_sets": (16, 32, 64, 128, 256),
    "command_queue_depth": (2, 4, 8, 16),
}
"""Values of each parameter, from little to much."""

_TOGETHER = slice(None)
_MEASURES = {
    "both latencies": _TOGETHER,
    **{f"latency {latency}": slice(place, place + 1) for place, latency in enumerate(LATENCIES)},
}
"""Which of the latencies are compared. Whether a network is slower depends on both."""


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", choices=_CHOICES, help="only this size of the array")
    parser.add_argument("--network", action="append", choices=network_names(), help="only this network of examples/")
    parser.add_argument("--resource", action="append", choices=RESOURCES, help="only this parameter")
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of what is done (default %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"put a table of all results into {DOCUMENT.name}")
    add_worker_options(parser)
    arguments = parser.parse_args()
    if arguments.write and (arguments.size or arguments.network or arguments.resource):
        parser.error("--write needs all results")
    lines = list(
        itertools.product(arguments.size or SIZES, arguments.network or NETWORKS, arguments.resource or RESOURCES)
    )
    # A dict, because each resource has a value that is the default.
    tasks = dict.fromkeys(task for line in lines for task in _tasks(*line))
    digests = _digests({name for name, _ in tasks})
    keys = {(name, config): f"{name} {digests[name]} {config.fingerprint}" for name, config in tasks}
    steps: list[_Step] = []
    found: dict[_Task, list[int]] = {}
    with chosen_workers(arguments) as workers, _journal(arguments.kept, digests) as journal:
        missing = [task for task in tasks if keys[task] not in journal.results]
        results = zip(missing, workers.in_order(predicted_cycles, missing, BATCH), strict=True)
        for size, name, resource in lines:
            for task in _tasks(size, name, resource):
                while keys[task] not in journal.results:
                    done, cycles = next(results)
                    journal.append({keys[done]: {"cycles": cycles}})
                found[task] = journal.results[keys[task]]["cycles"]
            steps += _print(size, name, resource, found)
    if arguments.write:
        tables = "".join(f"\nS = {size}:\n\n{_table(size, found)}" for size in SIZES)
        write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), "resources", f"{tables}\n").encode())
    _print_largest(steps)
    points = len({config for _, config in tasks})
    slower = sum(step.rise() > LIMIT for step in steps)
    print(f"{slower} times a network is slower where there is more of something; {points} configurations")
    return int(slower > 0)


_Task = tuple[str, openmxu.Config]
"""A network of ``examples/`` and a core."""


def _tasks(size: int, name: str, resource: str) -> list[_Task]:
    """A task for each value of a resource."""
    return [(name, openmxu.Config.for_size(size, **{resource: value})) for value in RESOURCES[resource]]


def _digests(names: Iterable[str]) -> dict[str, str]:
    """By the name of a network what its cycles depend on, beside the core."""
    sources = hashlib.sha256()
    for package in _SOURCES:
        folder = Path(next(iter(package.__path__)))
        for path in sorted(folder.rglob("*.py")):
            sources.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    digests = {}
    for name in names:
        digest = sources.copy()
        digest.update(load_network(name).model().SerializeToString(deterministic=True))
        digests[name] = digest.hexdigest()[:16]
    return digests


def _journal(path: Path, digests: Mapping[str, str]) -> Journal:
    """The journal; an empty one if results of these networks were made with other sources."""
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(path)
    known = (key.split() for key in journal.results)
    if all(digests.get(name, digest) == digest for name, digest, _ in known):
        return journal
    with journal:
        return Journal(path, restart=True)


class _Step(NamedTuple):
    """From one value of a resource to the next: cycles with each latency."""

    size: int
    network: str
    resource: str
    less: int
    more: int
    before: list[int]
    after: list[int]

    def rise(self, latencies: slice = _TOGETHER) -> float:
        """The part by which the network is slower."""
        return sum(self.after[latencies]) / sum(self.before[latencies]) - 1


def _print(size: int, name: str, resource: str, cycles: Mapping[_Task, list[int]]) -> list[_Step]:
    """Print a line, with the cycles for each latency; its steps."""
    found = list(zip(RESOURCES[resource], map(cycles.__getitem__, _tasks(size, name, resource)), strict=True))
    steps = [
        _Step(size, name, resource, less, more, before, after)
        for (less, before), (more, after) in itertools.pairwise(found)
    ]
    rises = [f"{step.more} is {step.rise():.1%} slower than {step.less}" for step in steps if step.rise() > LIMIT]
    values = ", ".join(f"{value}: {' / '.join(f'{count:,}' for count in counts)}" for value, counts in found)
    print(f"S = {size:2}  {name:12} {resource:20} {values}{'; ' if rises else ''}{', '.join(rises)}", flush=True)
    return steps


def _print_largest(steps: Sequence[_Step]) -> None:
    """Print where more of a resource costs most, by each measure, and what it changes by the others."""
    for measure, latencies in _MEASURES.items():
        step = max(steps, key=lambda step: step.rise(latencies))
        changes = ", ".join(f"{name} {step.rise(each):+.2%}" for name, each in _MEASURES.items())
        where = f"S = {step.size}, {step.network}, {step.resource} {step.less} to {step.more}"
        print(f"largest rise, {measure}: {where}: {changes}")


def _table(size: int, cycles: Mapping[_Task, list[int]]) -> str:
    """How much slower each network is with each value than with the default configuration, in Markdown."""
    default = openmxu.Config.for_size(size)
    rows = [("parameter", "value", *NETWORKS), ("---", *["---:"] * (1 + len(NETWORKS)))]
    for resource, values in RESOURCES.items():
        for value in values:
            config = default.replace(**{resource: value})
            more = [sum(cycles[name, config]) / sum(cycles[name, default]) - 1 for name in NETWORKS]
            cells = ["default"] * len(more) if config == default else [f"{part:+z.2%}" for part in more]
            rows.append((f"`{resource}`", f"{value:,}", *cells))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


if __name__ == "__main__":
    sys.exit(main())
