"""Compare the example networks with ONNX Runtime's CPU provider, output by output and layer by layer.

    python -m scripts.networks
    python -m scripts.networks resnet20 --device verilator --count 16
    python -m scripts.networks mnist --device verilator --layers none

For each network: its outputs on a device and those of ONNX Runtime; how often both find the same class; and every layer
alone, with ONNX Runtime's intermediates as inputs. Layers of the exact class must make ONNX Runtime's integers; sums
and averages of tensors may be 1 apart. MNIST is compared on its 500 test digits, and its accuracy is printed; the
others on seeded random images.

Exit status 1 when a layer differs by more than its class allows, an output of a network without inexact layers differs,
the class differs for more than one in 200 inputs, or MNIST's accuracy is less than 0.98.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.cli.networks import load_network
from scripts.networks.comparison import LayerComparison, NetworkComparison, compare_layers, compare_network
from scripts.networks.layers import layer_models

NETWORKS = ("mnist", "fashion", "cifar10", "resnet20")
COUNTS = {"interpreter": 500, "verilator": 16}
LEAST_AGREEMENT = 0.995
LEAST_ACCURACY = 0.98


def main() -> int:
    """Compare and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NAME", help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--device", choices=COUNTS, default="interpreter")
    parser.add_argument("--size", type=int, default=16, help="of the array; default: %(default)s")
    parser.add_argument("--count", type=int, help=f"inputs; default: {COUNTS}, all unseen digits of MNIST")
    parser.add_argument("--batch", type=int, default=8, help="inputs of one execution; default: %(default)s")
    parser.add_argument("--layers", choices=("all", "none"), default="all", help="compare layers, too; default: all")
    parser.add_argument("--json", action="store_true", help="one JSON object for each network")
    arguments = parser.parse_args()
    config = openmxu.Config.for_size(arguments.size)
    passed = True
    with openmxu.open_device(arguments.device, config) as device:
        for name in arguments.networks or NETWORKS:
            start = time.monotonic()
            example, labels = load_network(name), None
            count = arguments.count or COUNTS[arguments.device]
            if hasattr(example, "unseen"):
                images, labels = (array[: arguments.count] for array in example.unseen())
            else:
                images = example.inputs(count)
            model = example.model()
            inputs = {model.graph.input[0].name: images}
            whole = compare_network(model, inputs, device, arguments.batch)
            chosen = {key: array[:count] for key, array in inputs.items()}
            layers = compare_layers(model, chosen, device, arguments.batch) if arguments.layers == "all" else []
            is_exact = all(layer.is_exact for layer in layer_models(model))
            facts = _facts(name, whole, layers, is_exact, labels)
            facts |= {"device": arguments.device, "size": config.size, "seconds": round(time.monotonic() - start, 1)}
            passed = passed and facts["passed"]
            print(json.dumps(facts) if arguments.json else _text(facts), flush=True)
    return 0 if passed else 1


def _facts(
    name: str,
    whole: NetworkComparison,
    layers: Sequence[LayerComparison],
    is_exact: bool,
    labels: NDArray[np.int64] | None,
) -> dict[str, Any]:
    exact = [item for item in layers if item.layer.is_exact]
    others = [item for item in layers if not item.layer.is_exact]
    facts: dict[str, Any] = {
        "network": name,
        "inputs": whole.inputs,
        "outputs": whole.outputs,
        "differing": whole.differing,
        "same_class": whole.equal_classes / whole.inputs,
        "exact_layers": {"layers": len(exact), **_sums(exact)},
        "other_layers": {"layers": len(others), **_sums(others)},
    }
    passed = facts["same_class"] >= LEAST_AGREEMENT and all(item.passed for item in layers)
    if is_exact:
        passed = passed and whole.differing == 0
    if labels is not None:
        pairs = (("accuracy", whole.results), ("onnxruntime_accuracy", whole.expected))
        facts |= {key: float((array.argmax(axis=1) == labels).mean()) for key, array in pairs}
        passed = passed and facts["accuracy"] >= LEAST_ACCURACY
    return {**facts, "passed": passed}


def _sums(layers: Sequence[LayerComparison]) -> dict[str, int]:
    return {
        "results": sum(item.results for item in layers),
        "differing": sum(item.differing for item in layers),
        "largest": max((item.largest for item in layers), default=0),
    }


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['network']}: {'passed' if facts['passed'] else 'FAILED'}, {facts['device']}, size {facts['size']}, "
        f"{facts['seconds']} s",
        f"  outputs that differ   {facts['differing']:,} of {facts['outputs']:,}",
        f"  same class            {facts['same_class']:.4f} of {facts['inputs']:,} inputs",
    ]
    if "accuracy" in facts:
        lines.append(
            f"  accuracy              {facts['accuracy']:.4f}, ONNX Runtime's {facts['onnxruntime_accuracy']:.4f}"
        )
    for key, text in (("exact_layers", "exact layers"), ("other_layers", "sums, averages")):
        item = facts[key]
        lines.append(
            f"  {text:<21} {item['differing']:,} of {item['results']:,} results differ in {item['layers']} layers, "
            f"by {item['largest']} at most"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
