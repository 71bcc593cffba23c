"""Compare the cycle model with the RTL: matrix products, convolutions, the example networks, and random programs.

    python scripts/cycle_model.py
    python scripts/cycle_model.py --size 16 --case mnist --case "gemm 64 64 64"
    python scripts/cycle_model.py --write
    python scripts/cycle_model.py --random 400 --seed 0

``--write`` puts the table into docs/cycle_model.md. ``--random`` compares that many programs of each size in place of
the table: those of tb/lockstep/programs with consecutive seeds, over the whole instruction set. The last lines compare
the counters of the cycles by kind, of all programs together. The RTL runs on the
Verilated device with the default configuration of each size; the first run of a size builds it. Exit status 1 when a
prediction is more than 0.1 % off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

import openmxu
from openmxu.arch.events import Counter
from openmxu.arch.isa import Instruction
from openmxu.cli.networks import load_network, network_names
from openmxu.compiler import compile_network, conv_input, conv_network, gemm_input, gemm_network
from openmxu.compiler.ir.network import Network
from openmxu.device import Device
from openmxu.program import Program
from openmxu.program_file import write_atomically
from openmxu.sim.cycle_model import predict
from scripts.docs.sections import with_section
from tb.lockstep.programs.generator import generate

__all__ = [
    "LIMIT",
    "Comparison",
    "case_names",
    "compare",
    "compare_random",
    "kinds_summary",
    "layer",
    "main",
    "summary",
    "table",
]

LIMIT = 0.001
SIZES = (8, 16)
BATCH = 8

RANDOM_STEPS = 80
"""Length of a random program: some 160 instructions, and from two to sixteen thousand cycles."""

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

KINDS = (
    *(Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT, Counter.NON_MATRIX),
    *(Counter.RAW_STALL, Counter.INPUT_STALL),
)
"""Counters of cycles: four that add up to all cycles, and two parts of the last of these."""

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "cycle_model.md"

Inputs = NDArray[Any] | Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Comparison:
    """Predicted and simulated cycles of one program, and its counters :data:`KINDS`, predicted and measured."""

    name: str
    size: int
    instructions: int
    predicted: int
    measured: int
    kinds: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, name: str, instructions: Sequence[Instruction], device: Device) -> Comparison:
        """That of a program which the device has run since its counters were cleared."""
        prediction, counters = predict(instructions, device.config), device.counters
        return cls(
            name=name,
            size=device.config.size,
            instructions=len(instructions),
            predicted=prediction.cycles,
            measured=counters[Counter.CYCLES],
            kinds=tuple((getattr(prediction, kind.name.lower()), counters[kind]) for kind in KINDS),
        )

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
    return Comparison.of(name, program.instructions, device)


def compare_random(seed: int, device: Device) -> Comparison:
    """Run a random program on a device with a clock."""
    case = generate(device.config, seed, RANDOM_STEPS)
    device.reset()
    device.clear_counters()
    device.execute(case.instructions, case.host_memory, case.weight_memory)
    return Comparison.of(f"random {seed}", case.instructions, device)


def _case(name: str, config: openmxu.Config) -> tuple[Program, Inputs]:
    kind = name.split()[0]
    if kind == "gemm":
        network, values = layer(name)
        return compile_network(network, config), values
    if kind == "conv":
        network, values = layer(name)
        return compile_network(network, config, BATCH), np.repeat(values, BATCH, axis=0)
    example = load_network(kind)
    return openmxu.compile(example.model(), config, batch=BATCH), example.inputs(BATCH)


def layer(name: str) -> tuple[Network, NDArray[np.uint8]]:
    """A product, ``gemm M K N``, or a convolution, ``conv`` with its numbers in the order of :data:`CONVOLUTIONS`; and
    an input, of a convolution one image."""
    kind, *numbers = name.split()
    shape = [int(number) for number in numbers]
    if kind == "gemm":
        return gemm_network(*shape), gemm_input(*shape[:2])
    inputs, outputs, height, width, kernel, stride, pool = shape
    network = conv_network(inputs, outputs, height, width, kernel=kernel, stride=stride, pool=pool)
    return network, conv_input(inputs, height, width)


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


def summary(comparisons: list[Comparison]) -> str:
    """The errors of all programs, in a sentence."""
    wrong = [abs(item.predicted - item.measured) for item in comparisons]
    predicted, measured = (sum(getattr(item, name) for item in comparisons) for name in ("predicted", "measured"))
    worst = max(comparisons, key=lambda item: abs(item.error))
    return (
        f"{len(comparisons)} programs, {wrong.count(0)} of them exact; the largest error is {worst.error:+.3%}: "
        f"{worst.name} at S = {worst.size}; in cycles it is {max(wrong)}; "
        f"of all {measured:,} cycles together {predicted / measured - 1:+.4%}"
    )


def kinds_summary(comparisons: list[Comparison]) -> str:
    """The counters of all programs together, each in a line."""
    lines = []
    for number, kind in enumerate(KINDS):
        pairs = [item.kinds[number] for item in comparisons]
        predicted, measured = (sum(column) for column in zip(*pairs, strict=True))
        exact = sum(first == second for first, second in pairs)
        wrong = sum(abs(first - second) for first, second in pairs)
        lines.append(
            f"{kind.name.lower():12} {predicted:12,} predicted {measured:12,} measured, {exact} programs exact, "
            f"{wrong:,} cycles off in the others"
        )
    return "\n".join(lines)


def _compared(names: list[str], seeds: range, sizes: list[int]) -> Iterator[Comparison]:
    for size in sizes:
        # Random programs use all instructions.
        config = openmxu.Config.for_size(size, profile="full") if seeds else openmxu.Config.for_size(size)
        with openmxu.open_device("verilator", config) as device:
            for name in names:
                yield compare(name, device)
            for seed in seeds:
                yield compare_random(seed, device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help=f"of the array; default: {SIZES}")
    parser.add_argument("--case", action="append", choices=case_names(), help="default: all")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    parser.add_argument("--random", type=int, metavar="N", help="compare N random programs of each size instead")
    parser.add_argument("--seed", type=int, help="of the first random program; default: 0")
    arguments = parser.parse_args()
    if arguments.random is not None and (arguments.random < 1 or arguments.case or arguments.write):
        parser.error("--random needs at least 1 program, and neither --case nor --write")
    if arguments.seed is not None and arguments.random is None:
        parser.error("--seed is for --random: the other cases are the same each time")
    names = [] if arguments.random else arguments.case or case_names()
    first = arguments.seed or 0
    seeds = range(first, first + (arguments.random or 0))
    found = []
    for item in _compared(names, seeds, arguments.size or list(SIZES)):
        found.append(item)
        is_wrong = abs(item.error) > LIMIT
        if names or is_wrong:
            print(
                f"S = {item.size:2}  {item.name:32} {item.predicted:10,} predicted {item.measured:10,} measured "
                f"{item.error:+8.3%}{'  WRONG' if is_wrong else ''}",
                flush=True,
            )
    print(summary(found))
    print(kinds_summary(found))
    if arguments.write:
        write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), "measured", table(found)).encode())
    return int(any(abs(item.error) > LIMIT for item in found))


if __name__ == "__main__":
    sys.exit(main())
