"""Compare random models of one and of several layers with ONNX Runtime's CPU provider.

    python scripts/network_campaign.py
    python scripts/network_campaign.py --layer 17
    python scripts/network_campaign.py --network 3 --rtl

Single layers are those of ``scripts/exactness.py``, one family after the other, in every version of ONNX's operators,
with fixed and open batches. Networks have branches and layers of every kind. Each model runs on the interpreter, and
some on the RTL as well.

Of a network, every layer is compared by itself: ONNX Runtime computes it from the device's results of the layers
before. No output of an exact layer may differ; those of sums and products of tensors, averages and factors of channels
may be 1 apart. The network without intermediate outputs, which the compiler fuses to fewer operations, must produce the
same integers.

Prints the counts; exit status 1 when a model is refused or an output differs by more than that. Every such model is
printed with the command that runs it alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

import openmxu
from openmxu.device import Device
from scripts.random_models import FAMILIES, Network, random_network, reference

__all__ = ["Count", "main"]

SIZES = (4, 8, 16)
RTL_SIZES = (4, 8)


@dataclass
class Count:
    """Models or layers of one class, and how their outputs compare."""

    name: str
    tolerance: int
    models: int = 0
    outputs: int = 0
    differing: int = 0
    largest: int = 0

    def add(self, result: NDArray[np.generic], expected: NDArray[np.generic]) -> str | None:
        """Count the outputs of one more model or layer; returns a text if they are wrong."""
        if (result.dtype, result.shape) != (expected.dtype, expected.shape):
            return f"the output is {result.dtype} {result.shape}, not {expected.dtype} {expected.shape}"
        distance = np.abs(result.astype(np.int64) - expected)
        differing, largest = int((distance > 0).sum()), int(distance.max())
        self.models += 1
        self.outputs += result.size
        self.differing += differing
        self.largest = max(self.largest, largest)
        return f"{differing} of {result.size} outputs differ, by up to {largest}" if largest > self.tolerance else None


class _Campaign:
    """Runs models on devices that stay open, and counts."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self._options = options
        self._stack = stack
        self._devices: dict[tuple[str, int], Device] = {}
        self.failures = 0
        self.layers = {0: Count("single layers, exact", 0), 1: Count("single layers, at most 1 apart", 1)}
        self.network_layers = {0: Count("layers of networks, exact", 0), 1: Count("layers of networks, others", 1)}
        self.networks = Count("networks as a whole", 0)
        self.rtl = {"layer": Count("single layers on the RTL", 0), "network": Count("networks on the RTL", 0)}

    @property
    def counts(self) -> list[Count]:
        """All counts, in the order in which they are printed."""
        return [*self.layers.values(), *self.network_layers.values(), self.networks, *self.rtl.values()]

    def layer(self, number: int, on_rtl: bool) -> None:
        """Run a single layer."""
        family = list(FAMILIES.values())[number % len(FAMILIES)]
        case = family.case(self._options.seed, number, varies=True)
        try:
            (result,) = self._run(case.model, case.inputs, number)
            wrong = self.layers[family.tolerance].add(result, case.expected)
            if wrong is None and on_rtl:
                wrong = self._run_on_rtl("layer", case.model, case.inputs, number, [result])
        except Exception as error:  # a refused model is a result, too
            wrong = f"{type(error).__name__}: {error}"
        self._tell("layer", number, f"{family.name}: {case.text}", wrong)

    def network(self, number: int, on_rtl: bool) -> None:
        """Run a network, layer by layer and as a whole."""
        network = random_network(self._options.seed, number)
        try:
            wrong = self._compare(network, number)
            if wrong is None:
                results = self._run(network.case.model, network.case.inputs, number)
                wrong = self.networks.add(results[0], self._traced[network.layers[-1].output.name])
            if wrong is None and on_rtl:
                wrong = self._run_on_rtl("network", network.case.model, network.case.inputs, number, results)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        self._tell("network", number, network.case.text, wrong)

    def _compare(self, network: Network, number: int) -> str | None:
        """Compare every layer, computed from the device's results of the layers before it."""
        results = self._run(network.traced, network.case.inputs, number)
        names = [layer.output.name for layer in network.layers]
        self._traced = dict(network.case.inputs) | dict(zip(names, results, strict=True))
        for layer, model in zip(network.layers, network.models, strict=True):
            expected = reference(model, {item.name: self._traced[item.name] for item in model.graph.input})
            count = self.network_layers[0 if layer.is_exact else 1]
            wrong = count.add(self._traced[layer.output.name], expected)
            if wrong is not None:
                return f"layer {layer.text}: {wrong}"
        return None

    def _run(
        self, model: onnx.ModelProto, inputs: Mapping[str, NDArray[np.generic]], number: int
    ) -> list[NDArray[np.generic]]:
        device = self._device("interpreter", SIZES[number % len(SIZES)])
        program = openmxu.compile(model, device.config, batch=len(next(iter(inputs.values()))))
        return list(program.run(device, inputs).values())

    def _run_on_rtl(
        self,
        kind: str,
        model: onnx.ModelProto,
        inputs: Mapping[str, NDArray[np.generic]],
        number: int,
        expected: list[NDArray[np.generic]],
    ) -> str | None:
        device = self._device("verilator", RTL_SIZES[number % len(RTL_SIZES)])
        program = openmxu.compile(model, device.config, batch=len(next(iter(inputs.values()))))
        results = program.run(device, inputs)
        return next(filter(None, map(self.rtl[kind].add, results.values(), expected)), None)

    def _device(self, name: str, size: int) -> Device:
        if (name, size) not in self._devices:
            opened = openmxu.open_device(name, openmxu.Config.for_size(size))
            self._devices[name, size] = self._stack.enter_context(opened)
        return self._devices[name, size]

    def _tell(self, kind: str, number: int, text: str, wrong: str | None) -> None:
        if wrong is not None:
            self.failures += 1
            again = f"--{kind} {number} --rtl --seed {self._options.seed}"
            print(
                f"{kind} {number}: {wrong}\n  {text}\n  again: python scripts/network_campaign.py {again}", flush=True
            )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=336, help="single-layer models")
    parser.add_argument("--networks", type=int, default=112, help="models of several layers")
    parser.add_argument("--rtl-models", type=int, default=64, help="of all of them, how many run on the RTL as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layer", type=int, help="run this single layer alone")
    parser.add_argument("--network", type=int, help="run this network alone")
    parser.add_argument("--rtl", action="store_true", help="what is run alone, on the RTL as well")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; exit status 1 when anything is wrong."""
    options = _options(arguments)
    with ExitStack() as stack:
        campaign = _Campaign(options, stack)
        if options.layer is not None:
            campaign.layer(options.layer, options.rtl)
        if options.network is not None:
            campaign.network(options.network, options.rtl)
        if options.layer is None and options.network is None:
            total = options.layers + options.networks
            chosen = np.random.default_rng(options.seed).permutation(total)[: options.rtl_models]
            on_rtl = set(chosen.tolist())
            for number in range(options.layers):
                campaign.layer(number, number in on_rtl)
            for number in range(options.networks):
                campaign.network(number, options.layers + number in on_rtl)
    print(f"seed {options.seed}, S = {', '.join(map(str, SIZES))}; RTL S = {', '.join(map(str, RTL_SIZES))}")
    print(f"{'':32}{'models':>8}{'outputs':>10}{'differ':>8}{'largest':>9}")
    for count in campaign.counts:
        print(f"{count.name:32}{count.models:8}{count.outputs:10}{count.differing:8}{count.largest:9}")
    print(f"{campaign.failures} failures")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
