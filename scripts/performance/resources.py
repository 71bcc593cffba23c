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
from collections.abc import Iterator

import openmxu
from openmxu.cli.networks import load_network
from openmxu.sim.cycle_model import predict
from scripts.performance.measure import BATCH, NETWORKS

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


def growing(name: str, size: int, resource: str) -> Iterator[tuple[int, int]]:
    """Each value of a resource, and the cycles of a network."""
    model = load_network(name).model()
    for value in RESOURCES[resource]:
        config = openmxu.Config.for_size(size, **{resource: value})
        program = openmxu.compile(model, config, batch=BATCH)
        yield value, predict(program.instructions, config).cycles


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="only this size of the array")
    parser.add_argument("--network", action="append", help="only this network of examples/")
    parser.add_argument("--resource", action="append", choices=RESOURCES, help="only this parameter")
    arguments = parser.parse_args()
    slower = 0
    for size, name, resource in itertools.product(
        arguments.size or SIZES, arguments.network or NETWORKS, arguments.resource or RESOURCES
    ):
        found = list(growing(name, size, resource))
        rises = [
            f"{value} is {cycles / before - 1:.1%} slower than {less}"
            for (less, before), (value, cycles) in itertools.pairwise(found)
            if cycles > (1 + LIMIT) * before
        ]
        slower += len(rises)
        steps = ", ".join(f"{value}: {cycles:,}" for value, cycles in found)
        print(f"S = {size:2}  {name:12} {resource:20} {steps}{'; ' if rises else ''}{', '.join(rises)}", flush=True)
    print(f"{slower} times a network is slower where there is more of something")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
