"""Let the character network write: python examples/char_lstm/generate.py --prompt "The array" --length 200

Every character is one execution of the program; the states of both layers stay in the device's unified buffer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np

import openmxu
from examples.char_lstm.characters import ALPHABET, decode, encode
from examples.char_lstm.network import NETWORK
from openmxu.session import Session

__all__ = ["written"]


def written(session: Session, prompt: str, length: int, temperature: float, seed: int) -> Iterator[str]:
    """The characters that follow ``prompt``, one after the other.

    Parameters
    ----------
    session
        Of the network, with a batch of 1.
    temperature
        0 always takes the most probable character; the higher, the more others have a chance.
    """
    random = np.random.default_rng(seed)

    def follow(number: int) -> int:
        probabilities = session.run(np.array([[number]]))["probabilities"][0].astype(np.float64)
        if temperature == 0:
            return int(probabilities.argmax())
        weights = probabilities ** (1 / temperature)
        return int(random.choice(len(ALPHABET), p=weights / weights.sum()))

    for number in encode(prompt):
        following = follow(number)
    for _ in range(length):
        yield decode(np.array([following]))
        following = follow(following)


def main() -> None:
    """Write to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", default="The ", help="what the text begins with; default: %(default)r")
    parser.add_argument("--length", type=int, default=200, help="characters; default: %(default)s")
    parser.add_argument("--temperature", type=float, default=0.5, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("interpreter", "verilator"), default="interpreter")
    parser.add_argument("--size", type=int, default=16, help="of the array; default: %(default)s")
    options = parser.parse_args()
    unknown = sorted(set(options.prompt) - set(ALPHABET))
    if unknown or not options.prompt:
        parser.error(
            f"the prompt must be of the {len(ALPHABET)} characters of the alphabet: {unknown or 'it is empty'}"
        )
    config = openmxu.Config.for_size(options.size)
    program = openmxu.compile(NETWORK.model(), config, batch=1, states=NETWORK.states)
    with openmxu.open_device(options.device, config) as device:
        session = program.session(device)
        print(options.prompt, end="", flush=True)
        for character in written(session, options.prompt, options.length, options.temperature, options.seed):
            print(character, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
