"""Let the character network write: python examples/char_lstm/generate.py --prompt "The array" --length 200

Every character is one execution of the program; the states of both layers stay in the device's unified buffer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
from numpy.typing import NDArray

import openmxu
from examples.char_lstm.network import NETWORK
from examples.writing import read_options, show, text_after
from openmxu.session import Session

__all__ = ["written"]


def written(session: Session, prompt: str, length: int, temperature: float, seed: int) -> Iterator[str]:
    """As :func:`~examples.writing.text_after`; ``session`` is of the network, with a batch of 1."""

    def follow(number: int) -> NDArray[np.floating]:
        return session.run(np.array([[number]]))["probabilities"][0]

    return text_after(follow, prompt, length, temperature, seed)


def main() -> None:
    """Write to standard output."""
    options = read_options(__doc__)
    config = openmxu.Config.for_size(options.size)
    program = openmxu.compile(NETWORK.model(), config, batch=1, states=NETWORK.states)
    with openmxu.open_device(options.device, config) as device:
        session = program.session(device)
        show(options.prompt, written(session, options.prompt, options.length, options.temperature, options.seed))


if __name__ == "__main__":
    main()
