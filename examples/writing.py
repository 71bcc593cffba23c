"""How a network that knows the probabilities of the next character writes: the command that the examples share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from examples.char_lstm.characters import ALPHABET, decode, encode

__all__ = ["read_options", "show", "text_after"]


def text_after(
    follow: Callable[[int], NDArray[np.floating]], prompt: str, length: int, temperature: float, seed: int
) -> Iterator[str]:
    """The characters that follow ``prompt``, one after the other.

    Parameters
    ----------
    follow
        Takes the number of a character; gives the probabilities of those that may follow, (alphabet,).
    temperature
        0 always takes the most probable character; the higher, the more others have a chance.
    """
    random = np.random.default_rng(seed)

    def chosen(number: int) -> int:
        probabilities = follow(number).astype(np.float64)
        if temperature == 0:
            return int(probabilities.argmax())
        weights = probabilities ** (1 / temperature)
        return int(random.choice(len(ALPHABET), p=weights / weights.sum()))

    for number in encode(prompt):
        following = chosen(number)
    for _ in range(length):
        yield decode(np.array([following]))
        following = chosen(following)


def read_options(description: str | None) -> argparse.Namespace:
    """The command line of ``generate.py``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    return options


def show(prompt: str, characters: Iterator[str]) -> None:
    """Print a text as it is written."""
    print(prompt, end="", flush=True)
    for character in characters:
        print(character, end="", flush=True)
    print()
