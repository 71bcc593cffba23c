"""Let the character transformer write: python examples/char_transformer/generate.py --prompt "The array" --length 200

Every character is one execution of the program; the host keeps keys and values between them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
from numpy.typing import NDArray

import openmxu
from examples.char_transformer.network import NETWORK
from examples.writing import read_options, show, text_after
from openmxu.device import Device

__all__ = ["written"]


def written(
    program: openmxu.Program, device: Device, prompt: str, length: int, temperature: float, seed: int
) -> Iterator[str]:
    """As :func:`~examples.writing.text_after`; ``program`` is of the network, with a batch of 1."""
    states = NETWORK.beginning()

    def follow(number: int) -> NDArray[np.floating]:
        results = program.run(device, {"character": np.array([[number]]), **states})
        states.update({name: results[following] for name, following in NETWORK.states.items()})
        return results["probabilities"][0]

    return text_after(follow, prompt, length, temperature, seed)


def main() -> None:
    """Write to standard output."""
    options = read_options(__doc__)
    config = openmxu.Config.for_size(options.size, profile="full")
    program = openmxu.compile(NETWORK.model(), config, batch=1)
    with openmxu.open_device(options.device, config) as device:
        text = written(program, device, options.prompt, options.length, options.temperature, options.seed)
        show(options.prompt, text)


if __name__ == "__main__":
    main()
