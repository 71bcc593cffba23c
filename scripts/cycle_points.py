"""Compare the cycle model with the RTL at random points: a product or a convolution, a configuration, a memory latency.

    python scripts/cycle_points.py
    python scripts/cycle_points.py --count 100 --seed 7
    python scripts/cycle_points.py --rates

Each configuration is built when it is met first. With ``--rates`` each memory has a random rate, too. Exit
status 1 when a prediction is more than 0.5 % off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

import openmxu
from openmxu.arch.events import Counter
from openmxu.compiler import compile_network
from openmxu.sim.cycle_model import predict
from scripts.cycle_model import layer

LIMIT = 0.005

CONFIGS = (
    openmxu.Config.for_size(4),
    openmxu.Config.for_size(8),
    openmxu.Config.for_size(16),
    openmxu.Config.for_size(4, activation_lanes=4, weight_fifo_tiles=4, unified_buffer_rows=2048),
    openmxu.Config.for_size(8, activation_lanes=4, host_data_bytes=16, weight_data_bytes=4, accumulator_rows=512),
    openmxu.Config.for_size(8, host_data_bytes=4, unified_buffer_banks=4, command_queue_depth=8, parameter_sets=32),
)
LATENCIES = (1, 4, 10, 40, 100, 250)
SHARES = (None, Fraction(99, 100), Fraction(34, 45), Fraction(1, 2), Fraction(5, 16), Fraction(1, 10))
"""Rates of a memory, as parts of its port's width; those of the TPU's memories are 0.76 and 0.31 of 64 bytes."""


@dataclass(frozen=True)
class Point:
    """A layer, named as :func:`scripts.cycle_model.layer` has it, on a core with its memories."""

    config: int
    latency: int
    name: str
    host_rate: Fraction | None = None
    weight_rate: Fraction | None = None

    def __str__(self) -> str:
        named = (("host", self.host_rate), ("weights", self.weight_rate))
        rates = "".join(f", {name} {rate} bytes per cycle" for name, rate in named if rate is not None)
        return f"{self.name}, configuration {self.config}, latency {self.latency}{rates}"


def points(count: int, seed: int) -> Iterator[Point]:
    """Random points, the same ones for a seed; sizes are spread evenly over their logarithms."""
    random = np.random.default_rng(seed)

    def size(most: int) -> int:
        return int(np.exp(random.uniform(0, np.log(most + 1))))

    for _ in range(count):
        kind, shape = "gemm", [size(300), size(300), size(300)]
        if random.random() < 0.5:
            kernel, stride, pool = (int(random.choice(some)) for some in ((1, 3, 5), (1, 1, 2), (1, 1, 2)))
            # Pooling needs as many positions as its window has.
            kind, shape = "conv", [size(40), size(40), 4 + size(16), 4 + size(16), kernel, stride, pool]
        name = " ".join(map(str, (kind, *shape)))
        yield Point(int(random.integers(len(CONFIGS))), int(random.choice(LATENCIES)), name)


def with_rates(found: Iterator[Point], seed: int) -> Iterator[Point]:
    """The same points with random rates of the memories."""
    random = np.random.default_rng((seed, 1))
    for point in found:
        config = CONFIGS[point.config]
        host, weights = (SHARES[number] for number in random.integers(len(SHARES), size=2))
        yield replace(
            point,
            host_rate=host and host * config.host_data_bytes,
            weight_rate=weights and weights * config.weight_data_bytes,
        )


def error(point: Point) -> float:
    """Of the prediction for a point, as a fraction of the measured cycles."""
    config = CONFIGS[point.config]
    network, inputs = layer(point.name)
    program = compile_network(network, config, effort=0)
    memories = {
        "memory_latency": point.latency,
        "host_rate": point.host_rate,
        "weight_rate": point.weight_rate,
    }
    with openmxu.open_device("verilator", config, **memories) as device:
        program.run(device, inputs)
        measured = device.counters[Counter.CYCLES]
    return predict(program.instructions, config, **memories).cycles / measured - 1


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="points; 1,000 without it")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers; 0 without it")
    parser.add_argument("--rates", action="store_true", help="memories of random rates, below a beat per cycle")
    arguments = parser.parse_args()
    some = points(arguments.count, arguments.seed)
    if arguments.rates:
        some = with_rates(some, arguments.seed)
    found = [(error(point), point) for point in track(list(some), description="Points", disable=None)]
    exact = sum(value == 0 for value, _ in found)
    for value, point in sorted(found, key=lambda item: -abs(item[0]))[:10]:
        print(f"{value:+.3%} {point}")
    worst = max(abs(value) for value, _ in found)
    print(f"{len(found):,} points: {exact:,} exact to the cycle, at most {worst:.2%} off")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
