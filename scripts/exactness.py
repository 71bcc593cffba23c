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
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import helper
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from openmxu.cluster import Workers, add_worker_options, chosen_workers
from scripts.random_models import FAMILIES, Family, make_model, random_bytes, reference
from scripts.random_models.comparison import Comparison, Setting, compare, run

__all__ = ["Comparison", "Totals", "compare", "main", "random_bytes", "reference"]

OUTPUTS = {"interpreter": 100_000, "verilator": 10_000}
MODELS = {"interpreter": 512, "verilator": 1}  # 512 models cover every zero point
SIZES = {"interpreter": (2, 4, 8, 16, 32), "verilator": (4, 8)}
STOP_AFTER = 10
"""Number of failed models after which a family stops."""
LEAST_VARIED = 0.3


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
    add_worker_options(parser)
    options = parser.parse_args()
    options.size = options.size or SIZES[options.device]
    options.family = options.family or list(FAMILIES)
    options.outputs = OUTPUTS[options.device] if options.outputs is None else options.outputs
    options.models = MODELS[options.device] if options.models is None else options.models
    return options


class _Campaign:
    """Runs families on workers; the results do not depend on their number."""

    def __init__(self, options: argparse.Namespace, progress: Progress, workers: Workers) -> None:
        self._options = options
        self._progress = progress
        self._workers = workers

    def run(self, family: Family) -> Totals:
        options, totals = self._options, Totals()
        setting = Setting(options.device, options.size, family.name, options.seed)
        task = self._progress.add_task(family.name, total=options.outputs)
        for number, result in self._results(setting):
            problem = self._problem(family, result)
            if isinstance(result, Comparison):
                totals.add(result)
                self._progress.update(task, completed=min(totals.outputs, options.outputs))
            if problem:
                totals.failed += 1
                self._tell(setting, number, problem)
            if self._is_enough(totals):
                break
        self._progress.remove_task(task)
        return totals

    def _results(self, setting: Setting) -> Iterator[tuple[int, Comparison | str]]:
        """All models one after the other, without end; or the only one, whose exceptions are raised."""
        if (number := self._options.model) is not None:
            yield number, setting.run(number)
            return
        yield from enumerate(self._workers.in_order(run, itertools.count(), setting))

    def _is_enough(self, totals: Totals) -> bool:
        options = self._options
        is_done = totals.outputs >= options.outputs and totals.models >= options.models
        return is_done or totals.failed >= STOP_AFTER

    @staticmethod
    def _problem(family: Family, result: Comparison | str) -> str | None:
        if isinstance(result, str):
            return result
        if result.largest <= family.tolerance:
            return None
        return f"{result.differing} of {result.outputs} outputs differ, by up to {result.largest}"

    def _tell(self, setting: Setting, number: int, text: str) -> None:
        name = f'"{setting.family}"' if " " in setting.family else setting.family
        place = f"--device {setting.device} --size {setting.size(number)} --family {name}"
        again = f"{place} --seed {setting.seed} --model {number}"
        self._progress.print(
            f"{setting.family}: {text}\n  {setting.case(number).text}\n  again: python scripts/exactness.py {again}",
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
    shown = (TextColumn("{task.description:32}"), *columns)
    with chosen_workers(options) as workers, Progress(*shown, console=console) as progress:
        campaign = _Campaign(options, progress, workers)
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
