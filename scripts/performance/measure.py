"""Programs on the simulated RTL: their cycles, and the cycles that their roofline allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch.events import Counter
from openmxu.cli.networks import load_network
from openmxu.compiler import compile_network, evaluate, gemm_input, gemm_network, import_model
from openmxu.program import Program

__all__ = ["Measured", "cases", "measure"]

GEMMS = {
    8: ("31 31 31", "8 784 128", "17 100 33", "256 32 256", "1000 16 16", "64 64 64", "128 128 128", "256 256 256"),
    16: ("64 64 64", "128 128 128", "8 784 128", "256 256 256"),
    32: ("64 64 64", "128 128 128", "256 256 256"),
}
"""M, K, N of products, by the size of the array."""

NETWORKS = ("text_lstm", "char_lstm", "series_gru", "mnist", "cifar10", "resnet20")
NETWORK_SIZES = (8, 16)
BATCH = 8
LATENCIES = (4, 100)


@dataclass(frozen=True)
class Measured:
    """A program on the RTL."""

    name: str
    size: int
    latency: int
    cycles: int
    bound: int
    limit: str
    utilization: float
    mismatches: int

    @property
    def ratio(self) -> float:
        """Bound ÷ cycles: 1 on the roofline."""
        return self.bound / self.cycles

    @property
    def cells(self) -> tuple[str, ...]:
        """One row of the table."""
        return (
            self.name,
            str(self.size),
            str(self.latency),
            f"{self.cycles:,}",
            f"{self.bound:,}",
            self.limit,
            f"{self.ratio:.3f}",
            f"{self.utilization:.3f}",
        )


def _prepared(name: str, config: openmxu.Config) -> tuple[Program, Any, Mapping[str, NDArray[Any]]]:
    """A program, its inputs and the results that a numpy model says."""
    kind, *numbers = name.split()
    if kind == "gemm":
        m, k, n = map(int, numbers)
        network, values = gemm_network(m, k, n), gemm_input(m, k)
        result = evaluate(network, values)
        return compile_network(network, config), values, {network.outputs[0].host.name: result}
    example = load_network(kind)
    model, inputs = example.model(), example.inputs(BATCH)
    imported = import_model(model)
    given = inputs if isinstance(inputs, Mapping) else {imported.inputs[0].name: inputs}
    return openmxu.compile(model, config, batch=BATCH), given, imported.evaluate(given)


def measure(name: str, size: int, latency: int) -> Measured:
    """Run a case on the RTL."""
    config = openmxu.Config.for_size(size)
    program, inputs, expected = _prepared(name, config)
    with openmxu.open_device("verilator", config, memory_latency=latency) as device:
        results = program.run(device, inputs)
        cycles = device.counters[Counter.CYCLES]
    total = openmxu.report(program, memory_latency=latency).total
    return Measured(
        name=name,
        size=size,
        latency=latency,
        cycles=cycles,
        bound=total.bound,
        limit=next(part for part, busy in total.busy.items() if busy == total.bound),
        utilization=program.multiply_adds / (size**2 * cycles),
        mismatches=sum(int(np.count_nonzero(array != expected[item])) for item, array in results.items()),
    )


def cases() -> Iterator[tuple[str, int, int]]:
    """Name, size of the array and latency of the memories of everything that is measured."""
    for latency in LATENCIES:
        for size, shapes in GEMMS.items():
            yield from ((f"gemm {shape}", size, latency) for shape in shapes)
    for size in NETWORK_SIZES:
        yield from ((name, size, LATENCIES[0]) for name in NETWORKS)
