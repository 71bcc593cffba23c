"""Compare the recurrent example networks with their float models, and the RTL with the interpreter.

    python -m scripts.recurrent_networks
    python -m scripts.recurrent_networks text_lstm --size 8
    python -m scripts.recurrent_networks series_gru --device verilator --size 16

On the interpreter, the final outputs of 100 sequences are compared with those of the float model in ONNX Runtime. On
other devices, the last steps of a few sequences are compared with the interpreter.

Exit status 1 when an output is more than 0.02 off, the class of more than 2 % of the sequences differs, or a device's
outputs differ from the interpreter's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from examples.recurrent_network import RecurrentNetwork
from openmxu.cli.networks import load_network

LARGEST_DIFFERENCE = 0.02
LEAST_AGREEMENT = 0.98
SEQUENCES = 100


@dataclass(frozen=True)
class Short:
    """A run short enough for simulating the RTL: steps, and sequences in a batch."""

    steps: int
    sequences: int


@dataclass(frozen=True)
class Defaults:
    """Size of the array for whole sequences, and the short run."""

    size: int
    short: Short


NETWORKS = {
    "text_lstm": Defaults(16, Short(40, 8)),
    "char_lstm": Defaults(32, Short(12, 4)),
    "series_gru": Defaults(64, Short(24, 2)),
}


def classes(outputs: NDArray[np.float32]) -> NDArray[np.int64]:
    """The predicted class: the most probable one, or yes or no for each independent output."""
    return outputs.argmax(axis=1) if outputs.shape[1] > 3 else (outputs > 0.5).astype(np.int64)


def compare_with_float(network: RecurrentNetwork, device: openmxu.Device, count: int, seed: int) -> dict[str, Any]:
    """Compare the final outputs of whole sequences."""
    sequences = network.sequences(count, seed)
    found, wanted = network.run(device, sequences), network.run_float(sequences)
    same = classes(found) == classes(wanted)
    facts = {
        "sequences": count,
        "steps": sequences.shape[1],
        "largest_difference": float(np.abs(found - wanted).max()),
        "same_class": float(same.reshape(count, -1).all(axis=1).mean()),
        "spread": [round(float(value), 3) for value in np.quantile(wanted, [0.05, 0.5, 0.95])],
    }
    passed = facts["largest_difference"] <= LARGEST_DIFFERENCE and facts["same_class"] >= LEAST_AGREEMENT
    return facts | {"passed": bool(passed)}


def compare_with_interpreter(
    network: RecurrentNetwork, device: openmxu.Device, short: Short, seed: int
) -> dict[str, Any]:
    """Compare the final outputs after the last steps of sequences."""
    sequences = network.sequences(short.sequences, seed)[:, -short.steps :]
    device.clear_counters()
    found = network.run(device, sequences)
    with openmxu.open_device("interpreter", device.config) as interpreter:
        wanted = network.run(interpreter, sequences)
    counters = {counter.name.lower(): int(value) for counter, value in device.counters.items()}
    differing = int((found != wanted).sum())
    return {
        "sequences": short.sequences,
        "steps": sequences.shape[1],
        "outputs": found.size,
        "differing": differing,
        "cycles": counters.get("cycles"),
        "activation_busy": counters.get("activation_busy"),
        "matrix_busy": counters.get("matrix_busy"),
        "passed": differing == 0,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NAME", help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--device", choices=("interpreter", "verilator"), default="interpreter")
    parser.add_argument("--size", type=int, help="of the array; default: 16 for the RTL, else what is fast")
    parser.add_argument(
        "--count", type=int, default=SEQUENCES, help="sequences on the interpreter; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sequences; default: %(default)s")
    options = parser.parse_args(arguments)
    passed = True
    for name in options.networks or NETWORKS:
        start = time.monotonic()
        network, defaults = load_network(name), NETWORKS[name]
        is_short = options.device != "interpreter"
        config = openmxu.Config.for_size(options.size or (16 if is_short else defaults.size))
        with openmxu.open_device(options.device, config) as device:
            if is_short:
                facts = compare_with_interpreter(network, device, defaults.short, options.seed)
            else:
                facts = compare_with_float(network, device, options.count, options.seed)
        facts = {"network": name, "device": options.device, "size": config.size, "seed": options.seed, **facts}
        print(json.dumps(facts | {"seconds": round(time.monotonic() - start, 1)}), flush=True)
        passed = passed and facts["passed"]
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
