"""Compare random quantized models with ONNX Runtime's CPU provider, output by output.

    python scripts/exactness.py
    python scripts/exactness.py --device verilator
    python scripts/exactness.py --family QLinearConv --family Conv --outputs 1000000 --seed 1

Expected outputs are ONNX Runtime's own, at its default optimization level. Graphs with QuantizeLinear and
DequantizeLinear are laid out so that it fuses them to integer kernels, as it does for quantizers' models; for int8 that
takes session.qdqisint8allowed, its default on ARM (on x86 it computes such convolutions in float32).

In exact families no output may differ. In the others outputs may be 1 apart. openmxu scales an integer, rounds it half
to even, and adds the zero point. ONNX Runtime adds the zero point to the scaled float32 value before it rounds: with an
odd zero point an exact tie goes the other way, and next to a tie the float32 sum is rounded once more. For average
pooling ONNX Runtime divides a float32 sum of scaled values, while openmxu scales the integer sum once; for QLinearAdd
ONNX Runtime adds products with fused multiplications in float32, openmxu in fixed point. Ties are rare, unless all
scales are powers of two: such models form separate families. The compiler lets ONNX Runtime compute the tables of
functions if it is installed: their families compare look-ups, types and quantization, not exponentials. In the family
of other functions ONNX Runtime's result may depend on a value's place in a vector; outputs may be 1 apart, too.

Exit status 1 when an output differs by more than its family allows, a model is refused, or outputs vary too little to
prove anything. Every such model is printed with the command that runs it alone. On x86 processors without VNNI
instructions, ONNX Runtime's kernels for uint8 by int8 may saturate sums of two products; a warning about this is
printed first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import helper
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

import openmxu
from openmxu.device import Device
from scripts.random_models import FAMILIES, Case, Family, make_model, random_bytes, reference

__all__ = ["Comparison", "Totals", "compare", "main", "random_bytes", "reference"]

OUTPUTS = {"interpreter": 100_000, "verilator": 10_000}
MODELS = {"interpreter": 512, "verilator": 1}  # 512 models cover every zero point
SIZES = {"interpreter": (2, 4, 8, 16, 32), "verilator": (4, 8)}
STOP_AFTER = 10
"""Number of failed models after which a family stops."""
LEAST_VARIED = 0.3


@dataclass(frozen=True)
class Comparison:
    """Outputs of one model.

    Attributes
    ----------
    outputs, differing
        All outputs, and those that differ from ONNX Runtime's.
    largest
        Largest difference.
    varied
        Outputs that are neither the smallest nor the largest one of their model.
    """

    outputs: int
    differing: int
    largest: int
    varied: int


@dataclass
class Totals:
    """Sums over the models of one family."""

    models: int = 0
    outputs: int = 0
    differing: int = 0
    largest: int = 0
    varied: int = 0
    failed: int = 0

    def add(self, result: Comparison) -> None:
        """Count one more model."""
        self.models += 1
        self.outputs += result.outputs
        self.differing += result.differing
        self.largest = max(self.largest, result.largest)
        self.varied += result.varied

    @property
    def passed(self) -> bool:
        """Whether the family's outputs vary enough and differ no more than allowed."""
        return not self.failed and self.varied >= LEAST_VARIED * self.outputs


def compare(case: Case, device: Device) -> Comparison:
    """Run a case on a device.

    Raises
    ------
    ValueError
        The compiler refuses the model, or type or shape of the outputs are wrong.
    openmxu.device.DeviceError
        The device failed.
    """
    program = openmxu.compile(case.model, device.config, batch=len(case.expected))
    (result,) = program.run(device, case.inputs).values()
    expected = case.expected
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        raise ValueError(f"the output is {result.dtype} {result.shape}, not {expected.dtype} {expected.shape}")
    distance = np.abs(result.astype(np.int64) - expected)
    varied = (expected > expected.min()) & (expected < expected.max())
    return Comparison(expected.size, int((distance > 0).sum()), int(distance.max()), int(varied.sum()))


def saturates() -> bool:
    """Whether ONNX Runtime's integer products are wrong on this processor."""
    weights, values = np.full((4, 4), 127, np.int8), np.full((4, 4), 255, np.uint8)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    model = make_model([node], {"w": weights}, [("x", "uint8", (4,))], ("y", "int32", (4,)))
    return bool((reference(model, values) != 4 * 127 * 255).any())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=SIZES, default="interpreter")
    parser.add_argument("--size", type=int, action="append", help="array size; may be given several times")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be given several times; default all")
    parser.add_argument("--outputs", type=int, help="compare at least so many outputs of every family")
    parser.add_argument("--models", type=int, help="and at least so many models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=int, help="run this model alone")
    options = parser.parse_args()
    options.size = options.size or SIZES[options.device]
    options.family = options.family or list(FAMILIES)
    options.outputs = OUTPUTS[options.device] if options.outputs is None else options.outputs
    options.models = MODELS[options.device] if options.models is None else options.models
    return options


class _Campaign:
    """Runs families on devices that stay open."""

    def __init__(self, options: argparse.Namespace, progress: Progress, stack: ExitStack) -> None:
        self._options = options
        self._progress = progress
        self._stack = stack
        self._devices: dict[int, Device] = {}

    def run(self, family: Family) -> Totals:
        options, totals = self._options, Totals()
        task = self._progress.add_task(family.name, total=options.outputs)
        for number in self._numbers(totals):
            # In 512 models, every zero point occurs with both of two sizes.
            size = options.size[(number + number // 256) % len(options.size)]
            case = family.case(options.seed, number)
            try:
                result = compare(case, self._device(size))
            except Exception as error:
                if options.model is not None:
                    raise
                totals.failed += 1
                self._tell(family, number, size, case, f"{type(error).__name__}: {error}")
                continue
            totals.add(result)
            if result.largest > family.tolerance:
                totals.failed += 1
                text = f"{result.differing} of {result.outputs} outputs differ, by up to {result.largest}"
                self._tell(family, number, size, case, text)
            self._progress.update(task, completed=min(totals.outputs, options.outputs))
        self._progress.remove_task(task)
        return totals

    def _numbers(self, totals: Totals) -> Iterator[int]:
        options = self._options
        if options.model is not None:
            yield options.model
            return
        number = 0
        while (totals.outputs < options.outputs or totals.models < options.models) and totals.failed < STOP_AFTER:
            yield number
            number += 1

    def _device(self, size: int) -> Device:
        if size not in self._devices:
            config = openmxu.Config.for_size(size)
            self._devices[size] = self._stack.enter_context(openmxu.open_device(self._options.device, config))
        return self._devices[size]

    def _tell(self, family: Family, number: int, size: int, case: Case, text: str) -> None:
        options = self._options
        name = f'"{family.name}"' if " " in family.name else family.name
        again = f"--device {options.device} --size {size} --family {name} --seed {options.seed} --model {number}"
        self._progress.print(
            f"{family.name}: {text}\n  {case.text}\n  again: python scripts/exactness.py {again}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def main() -> int:
    """Compare family by family; exit status 1 when one fails."""
    options = _options()
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if saturates():
        console.print("ONNX Runtime's products of uint8 by int8 saturate on this processor", style="yellow")
    print(f"{options.device}, S = {', '.join(map(str, options.size))}, seed {options.seed}")
    print(f"{'family':32}{'models':>8}{'outputs':>10}{'varied':>8}{'differ':>8}{'share':>11}{'largest':>9}")
    passed = True
    with Progress(TextColumn("{task.description:32}"), *columns, console=console) as progress, ExitStack() as stack:
        campaign = _Campaign(options, progress, stack)
        for name in options.family:
            totals = campaign.run(FAMILIES[name])
            passed &= totals.passed
            outputs = max(totals.outputs, 1)
            print(
                f"{name:32}{totals.models:8}{totals.outputs:10}{totals.varied / outputs:8.0%}{totals.differing:8}"
                f"{totals.differing / outputs:11.5%}{totals.largest:9}{'' if totals.passed else '  FAILED'}",
                flush=True,
            )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
