"""Whether a network gets slower where a core has more of something: predicted by the cycle model.

    python -m scripts.performance.resources
    python -m scripts.performance.resources --size 8 --network mnist --resource weight_fifo_tiles

Every other parameter is the default of the size. Exit status 1 when a network is slower by more than 0.1 %, which is
what the cycle model may be off.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping

import openmxu
from openmxu.cluster import add_worker_options, chosen_workers
from scripts.performance.measure import BATCH, NETWORKS, predicted_cycles

SIZES = (8, 16)
LIMIT = 0.001

RESOURCES = {
    "host_data_bytes": (4, 8, 16, 32),
    "weight_data_bytes": (4, 8, 16, 32),
    "activation_lanes": (1, 2, 4, 8),
    "weight_fifo_tiles": (4, 8, 16, 32),
    "unified_buffer_rows": (2048, 4096, 8192, 16384, 32768),
    "accumulator_rows": (256, 512, 1024, 2048, 4096),
    "parameter_sets": (32, 64, 128, 256),
    "command_queue_depth": (2, 4, 8),
}
"""Values of each parameter, from little to much."""


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="only this size of the array")
    parser.add_argument("--network", action="append", help="only this network of examples/")
    parser.add_argument("--resource", action="append", choices=RESOURCES, help="only this parameter")
    add_worker_options(parser)
    arguments = parser.parse_args()
    lines = list(
        itertools.product(arguments.size or SIZES, arguments.network or NETWORKS, arguments.resource or RESOURCES)
    )
    # A dict, because each resource has a value that is the default.
    tasks = dict.fromkeys(task for line in lines for task in _tasks(*line))
    slower = 0
    with chosen_workers(arguments) as workers:
        results = zip(tasks, workers.in_order(predicted_cycles, list(tasks), BATCH), strict=True)
        cycles: dict[_Task, int] = {}
        for size, name, resource in lines:
            for task in _tasks(size, name, resource):
                while task not in cycles:
                    done, count = next(results)
                    cycles[done] = count
            slower += _print(size, name, resource, cycles)
    points = len({config for _, config in tasks})
    print(f"{slower} times a network is slower where there is more of something; {points} configurations")
    return int(slower > 0)


_Task = tuple[str, openmxu.Config]
"""A network of ``examples/`` and a core."""


def _tasks(size: int, name: str, resource: str) -> list[_Task]:
    """A task for each value of a resource."""
    return [(name, openmxu.Config.for_size(size, **{resource: value})) for value in RESOURCES[resource]]


def _print(size: int, name: str, resource: str, cycles: Mapping[_Task, int]) -> int:
    """Print a line; how often more of the resource makes the network slower."""
    found = list(zip(RESOURCES[resource], map(cycles.__getitem__, _tasks(size, name, resource)), strict=True))
    rises = [
        f"{value} is {count / before - 1:.1%} slower than {less}"
        for (less, before), (value, count) in itertools.pairwise(found)
        if count > (1 + LIMIT) * before
    ]
    steps = ", ".join(f"{value}: {count:,}" for value, count in found)
    print(f"S = {size:2}  {name:12} {resource:20} {steps}{'; ' if rises else ''}{', '.join(rises)}", flush=True)
    return len(rises)


if __name__ == "__main__":
    sys.exit(main())
