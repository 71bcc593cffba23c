"""Programs on the simulated RTL: their cycles, and the cycles that their roofline allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import openmxu
from openmxu.cli.cases import Case, example_case, layer_case
from openmxu.cli.networks import load_network
from openmxu.cli.programs import measured_run
from openmxu.compiler import gemm_input, gemm_network
from openmxu.sim.cycle_model import Predictor

__all__ = ["Measured", "cases", "measure", "predicted_cycles"]

GEMMS = {
    8: ("31 31 31", "8 784 128", "17 100 33", "256 32 256", "1000 16 16", "64 64 64", "128 128 128", "256 256 256"),
    16: ("64 64 64", "128 128 128", "8 784 128", "256 256 256", "8 1280 1280", "197 768 192"),
    32: ("64 64 64", "128 128 128", "256 256 256", "64 1024 1024", "200 512 512", "512 512 512"),
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
    bound_by: str
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
            self.bound_by,
            f"{self.ratio:.3f}",
            f"{self.utilization:.3f}",
        )


def _case(name: str, config: openmxu.Config) -> Case:
    kind, *numbers = name.split()
    if kind == "gemm":
        m, k, n = map(int, numbers)
        return layer_case(gemm_network(m, k, n), gemm_input(m, k), config)
    return example_case(load_network(kind), config, BATCH)


def measure(name: str, size: int, latency: int, **changes: int) -> Measured:
    """Run a case on the RTL; ``changes`` are parameters that are not those of the size."""
    config = openmxu.Config.for_size(size, **changes)
    case = _case(name, config)
    with openmxu.open_device("verilator", config, memory_latency=latency) as device:
        results, measurement = measured_run(case.program, device, case.inputs, f"Running {name}")
    total = openmxu.report(case.program, memory_latency=latency).total
    return Measured(
        name=name,
        size=size,
        latency=latency,
        cycles=measurement.cycles,
        bound=total.bound,
        bound_by=total.bound_by,
        utilization=measurement.utilization,
        mismatches=case.mismatches(results),
    )


def predicted_cycles(batch: int, task: tuple[str, openmxu.Config]) -> list[int]:
    """The cycles of a network of ``examples/`` on a core with each latency, by the cycle model."""
    name, config = task
    predictor = Predictor(openmxu.compile(load_network(name).model(), config, batch=batch).instructions, config)
    return [predictor.predict(latency).cycles for latency in LATENCIES]


def cases() -> Iterator[tuple[str, int, int]]:
    """Name, size of the array and latency of the memories of everything that is measured."""
    for latency in LATENCIES:
        for size, shapes in GEMMS.items():
            yield from ((f"gemm {shape}", size, latency) for shape in shapes)
    for size in NETWORK_SIZES:
        yield from ((name, size, LATENCIES[0]) for name in NETWORKS)
