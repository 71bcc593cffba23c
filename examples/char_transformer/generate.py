"""Let the character transformer write: python examples/char_transformer/generate.py --prompt "The array" --length 200

Every character is one execution of the program; the host keeps keys and values between them.
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
from examples.char_transformer.network import NETWORK
from openmxu.device import Device

__all__ = ["written"]


def written(
    program: openmxu.Program, device: Device, prompt: str, length: int, temperature: float, seed: int
) -> Iterator[str]:
    """The characters that follow ``prompt``, one after the other.

    Parameters
    ----------
    program
        Of the network, with a batch of 1.
    temperature
        0 always takes the most probable character; the higher, the more others have a chance.
    """
    random = np.random.default_rng(seed)
    states = NETWORK.beginning()

    def follow(number: int) -> int:
        results = program.run(device, {"character": np.array([[number]]), **states})
        states.update({name: results[following] for name, following in NETWORK.states.items()})
        probabilities = results["probabilities"][0].astype(np.float64)
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
    config = openmxu.Config.for_size(options.size, profile="full")
    program = openmxu.compile(NETWORK.model(), config, batch=1)
    with openmxu.open_device(options.device, config) as device:
        print(options.prompt, end="", flush=True)
        for character in written(program, device, options.prompt, options.length, options.temperature, options.seed):
            print(character, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
