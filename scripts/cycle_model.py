"""Compare the cycle model with the RTL: matrix products, convolutions and the example networks.

    python scripts/cycle_model.py
    python scripts/cycle_model.py --size 16 --case mnist --case "gemm 64 64 64"
    python scripts/cycle_model.py --write

``--write`` puts the table into docs/cycle_model.md. The RTL runs on the Verilated device with the default
configuration of each size; the first run of a size builds it. Exit status 1 when a prediction is more than 2 % off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

import openmxu
from openmxu.arch.events import Counter
from openmxu.cli.networks import load_network, network_names
from openmxu.compiler import compile_network, conv_input, conv_network, gemm, gemm_input
from openmxu.device import Device
from openmxu.program import Program
from openmxu.sim.cycle_model import predict

__all__ = ["LIMIT", "Comparison", "case_names", "compare", "main", "table"]

LIMIT = 0.02
SIZES = (8, 16)
BATCH = 8

GEMMS = ((1, 512, 512), (8, 64, 64), (64, 64, 64), (100, 70, 50), (16, 256, 512), (256, 256, 256), (512, 512, 512))
"""M, K, N: those of the README, and others that weights, transfers or the activation unit limit."""

CONVOLUTIONS = (
    (64, 64, 32, 32, 3, 1, 2),
    (3, 32, 32, 32, 3, 1, 1),
    (16, 32, 32, 32, 3, 2, 1),
    (16, 32, 32, 32, 1, 2, 1),
    (24, 24, 15, 17, 5, 1, 3),
)
"""Channels in and out, height, width, kernel, stride, pooling: the convolution of the README, and others."""

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "cycle_model.md"
MARKS = ("<!-- scripts/cycle_model.py --write -->\n", "<!-- end -->\n")

Inputs = NDArray[Any] | Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Comparison:
    """Predicted and simulated cycles of one program."""

    name: str
    size: int
    instructions: int
    predicted: int
    measured: int

    @property
    def error(self) -> float:
        """Error of the prediction, as a fraction of the measured cycles."""
        return self.predicted / self.measured - 1


def case_names() -> list[str]:
    """Names of all cases."""
    gemms = [f"gemm {m} {k} {n}" for m, k, n in GEMMS]
    return [*gemms, *(f"conv {' '.join(map(str, shape))}" for shape in CONVOLUTIONS), *network_names()]


def compare(name: str, device: Device) -> Comparison:
    """Run one of :func:`case_names` on a device with a clock."""
    program, inputs = _case(name, device.config)
    device.clear_counters()
    program.run(device, inputs)
    return Comparison(
        name=name,
        size=device.config.size,
        instructions=len(program.instructions),
        predicted=predict(program.instructions, program.config).cycles,
        measured=device.counters[Counter.CYCLES],
    )


def _case(name: str, config: openmxu.Config) -> tuple[Program, Inputs]:
    kind, *numbers = name.split()
    shape = [int(number) for number in numbers]
    if kind == "gemm":
        return gemm(*shape, config), gemm_input(*shape[:2])
    if kind == "conv":
        inputs, outputs, height, width, kernel, stride, pool = shape
        network = conv_network(inputs, outputs, height, width, kernel=kernel, stride=stride, pool=pool)
        return compile_network(network, config, BATCH), np.repeat(conv_input(inputs, height, width), BATCH, axis=0)
    network = load_network(kind)
    return openmxu.compile(network.model(), config, batch=BATCH), network.inputs(BATCH)


def table(comparisons: list[Comparison]) -> str:
    """A table in Markdown."""
    lines = ["| what | S | instructions | predicted | measured | error |", "| --- | --- | --- | --- | --- | --- |"]
    for item in comparisons:
        numbers = (f"{number:,}" for number in (item.instructions, item.predicted, item.measured))
        lines.append(f"| {_title(item.name)} | {item.size} | {' | '.join(numbers)} | {item.error:+.2%} |")
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    kind, *numbers = name.split()
    if kind == "gemm":
        return " × ".join(numbers)
    if kind == "conv":
        inputs, outputs, height, width, kernel, stride, pool = numbers
        pooled = f", maximum of {pool} × {pool}" if pool != "1" else ""
        return f"{kernel} × {kernel}, {inputs} → {outputs} channels on {height} × {width}, stride {stride}{pooled}"
    return f"`examples/{kind}`"


def _compared(names: list[str], sizes: list[int]) -> Iterator[Comparison]:
    for size in sizes:
        with openmxu.open_device("verilator", openmxu.Config.for_size(size)) as device:
            for name in names:
                yield compare(name, device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help=f"of the array; default: {SIZES}")
    parser.add_argument("--case", action="append", choices=case_names(), help="default: all")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    arguments = parser.parse_args()
    found = []
    for item in _compared(arguments.case or case_names(), arguments.size or list(SIZES)):
        found.append(item)
        wrong = "" if abs(item.error) <= LIMIT else "  WRONG"
        print(
            f"S = {item.size:2}  {item.name:32} {item.predicted:10,} predicted {item.measured:10,} measured "
            f"{item.error:+8.3%}{wrong}",
            flush=True,
        )
    worst = max(found, key=lambda item: abs(item.error))
    print(f"{len(found)} programs; the largest error is {worst.error:+.3%}: {worst.name} at S = {worst.size}")
    if arguments.write:
        begin, end = MARKS
        before, _, rest = DOCUMENT.read_text().partition(begin)
        DOCUMENT.write_text(before + begin + table(found) + end + rest.partition(end)[2])
    return int(any(abs(item.error) > LIMIT for item in found))


if __name__ == "__main__":
    sys.exit(main())
