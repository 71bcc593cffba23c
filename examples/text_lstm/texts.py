"""Texts with a rule behind them: word numbers whose label depends on words and on the words before them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["STEPS", "WORDS", "random_texts"]

WORDS = 15_000
"""Size of the vocabulary; word 0 fills the beginning of short texts."""

STEPS = 250
"""Words of a text."""

_MOODS = 1_200
_NEGATIONS = 40
_REACH = 3
"""Words that a negation turns into their opposite."""


def _word_values() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What each word says, from -1 to 1, and which words negate."""
    random = np.random.default_rng(15)
    numbers = 1 + random.permutation(WORDS - 1)
    values = np.zeros(WORDS, np.float32)
    values[numbers[:_MOODS]] = random.uniform(-1, 1, _MOODS)
    negates = np.zeros(WORDS, np.bool_)
    negates[numbers[_MOODS : _MOODS + _NEGATIONS]] = True
    return values, negates


def random_texts(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Random texts and their labels.

    A text has a mood, which draws its words from those that say so; some words are negations, which turn the next
    three words into their opposite. The label is 1 where what the words say adds up to more than 0.

    Returns
    -------
    Word numbers, int64 (count, 250); labels, float32 (count,).
    """
    values, negates = _word_values()
    random = np.random.default_rng(seed)
    moods = np.flatnonzero(values)
    order = moods[np.argsort(values[moods])]
    texts = np.zeros((count, STEPS), np.int64)
    for text in texts:
        length = int(random.integers(60, STEPS + 1))
        words = random.integers(1, WORDS, length)
        is_mood = random.random(length) < 0.25
        lean = random.uniform(-0.35, 0.35)
        ranks = np.clip(random.normal(0.5 + lean, 0.35, length), 0, 1) * (order.size - 1)
        words = np.where(is_mood, order[np.rint(ranks).astype(int)], words)
        is_negation = random.random(length) < 0.03
        words[is_negation] = random.choice(np.flatnonzero(negates), int(is_negation.sum()))
        text[STEPS - length :] = words
    signs = np.ones(texts.shape, np.float32)
    for distance in range(1, _REACH + 1):
        signs[:, distance:] *= np.where(negates[texts[:, :-distance]], np.float32(-1), np.float32(1))
    return texts, ((values[texts] * signs).sum(axis=1) > 0).astype(np.float32)
