"""The text that the network learns: what this repository once said about itself, as numbers of characters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALPHABET", "decode", "encode", "learned_text", "unseen_text"]

ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))
"""96 characters: line feed and printable ASCII."""

_FOLDER = Path(__file__).parent


def learned_text() -> str:
    """The first nine tenths of README, LICENSE and each document, as they were when the network was trained."""
    return (_FOLDER / "text.txt").read_text(encoding="ascii")


def unseen_text() -> str:
    """The last tenth of each of them, which the network was not trained on."""
    return (_FOLDER / "unseen.txt").read_text(encoding="ascii")


def encode(text: str) -> NDArray[np.int64]:
    """The number of each character."""
    return np.array([ALPHABET.index(character) for character in text], np.int64)


def decode(numbers: NDArray[np.int64]) -> str:
    """The text of numbers."""
    return "".join(ALPHABET[number] for number in numbers)
