"""The TPU paper's workloads on the simulated RTL of 256 × 256 elements, and what the cycle model says of them.

    python -m scripts.tpu_v1.rtl
    python -m scripts.tpu_v1.rtl --workload MLP1 --workload CNN0

The first run builds the model. Every result is compared with the interpreter's. ``--write`` puts the table into
docs/tpu_v1.md. Exit status 1 when a number differs, or when the cycles do by more than 2 %.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from examples.tpu_v1.workloads import WORKLOADS
from openmxu.cli.programs import measured_run
from openmxu.device import Device
from openmxu.program import Program
from openmxu.sim.cycle_model import predict
from scripts.tpu_v1.arguments import read_arguments
from scripts.tpu_v1.document import markdown, write_section
from scripts.tpu_v1.measure import program_of
from scripts.tpu_v1.paper import HOST_RATE, WEIGHT_RATE

BATCHES = {"CNN1": 1}
"""Images of a run, where that is not the batch: 32 images of CNN1 are 7.7 million cycles."""

LIMIT = 0.02


@dataclass(frozen=True)
class Run:
    """A program on the RTL.

    Attributes
    ----------
    predicted, measured
        Cycles by the model, and on the RTL.
    active, stall, shift, other
        Counters of the RTL, in cycles: the array takes a row; waits for weights to arrive; to be shifted in; has no
        multiplication.
    speed
        Simulated cycles per second.
    numbers, mismatches
        Results, and those that differ from the interpreter's.
    """

    name: str
    batch: int
    predicted: int
    measured: int
    active: int
    stall: int
    shift: int
    other: int
    speed: float
    numbers: int
    mismatches: int

    @property
    def error(self) -> float:
        """The model's cycles beside the RTL's: 0.01 are one percent too many."""
        return self.predicted / self.measured - 1

    @property
    def is_good(self) -> bool:
        """Whether all numbers are equal, the cycles of all kinds add up, and the model comes close."""
        kinds = self.active + self.stall + self.shift + self.other
        return not self.mismatches and kinds == self.measured and abs(self.error) <= LIMIT


def random_inputs(program: Program, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random values for a batch of all inputs."""
    random = np.random.default_rng(seed)
    found = {}
    for item in program.inputs:
        limits, shape = np.iinfo(item.dtype), (program.batch, *item.shape)
        found[item.name] = random.integers(limits.min, limits.max + 1, shape).astype(item.dtype)
    return found


def run(name: str, device: Device) -> Run:
    """Run a workload on the RTL and on the interpreter."""
    workload = WORKLOADS[name]()
    program = program_of(workload, BATCHES.get(name, workload.batch))
    inputs = random_inputs(program)
    outputs, measurement = measured_run(program, device, inputs, f"Running {name}")
    with openmxu.open_device("interpreter", program.config) as interpreter:
        interpreter.load(program)
        expected: Mapping[str, NDArray[Any]] = interpreter.run(inputs)
    predicted = predict(program.instructions, program.config, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE).cycles
    counters = measurement.counters
    return Run(
        name=name,
        batch=program.batch,
        predicted=predicted,
        measured=measurement.cycles,
        active=counters["array_active"],
        stall=counters["weight_stall"],
        shift=counters["weight_shift"],
        other=counters["non_matrix"],
        speed=measurement.cycles / measurement.seconds,
        numbers=sum(array.size for array in outputs.values()),
        mismatches=sum(int(np.count_nonzero(array != expected[key])) for key, array in outputs.items()),
    )


def table(found: Sequence[Run]) -> str:
    """In Markdown."""
    heads = (
        "network",
        "batch",
        "cycles, RTL",
        "model",
        "error",
        "active",
        "weight stall",
        "weight shift",
        "non-matrix",
    )
    lines = [(*heads, "results", "different"), ["---", *["---:"] * (len(heads) + 1)]]
    for item in found:
        shares = (f"{part / item.measured:.1%}" for part in (item.active, item.stall, item.shift, item.other))
        cells = (item.name, f"{item.batch}", f"{item.measured:,}", f"{item.predicted:,}", f"{item.error:+.2%}", *shares)
        lines.append((*cells, f"{item.numbers:,}", f"{item.mismatches}"))
    return markdown(lines)


def main() -> int:
    """The exit status."""
    arguments = read_arguments(__doc__)
    config = openmxu.Config.preset("tpu_v1")
    found = []
    with openmxu.open_device("verilator", config, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE) as device:
        for name in arguments.workloads:
            found.append(run(name, device))
            print(f"{found[-1]}, {found[-1].error:+.2%}", flush=True)
    print(table(found), end="")
    if arguments.write:
        write_section("rtl", table(found))
    return int(not all(item.is_good for item in found))


if __name__ == "__main__":
    sys.exit(main())
