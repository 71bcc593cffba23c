"""How networks learn to write: from windows of the text, at places drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from examples.char_lstm.characters import ALPHABET, encode, learned_text

__all__ = ["learn_text"]

_SHOWN = 100
"""Iterations of which the mean loss is printed."""


def learn_text(
    model: nn.Module,
    *,
    iterations: int,
    sequences: int,
    steps: int,
    rate: float,
    decay: float,
    smoothing: float,
    computing: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Train a model that makes of characters, (batch, steps), the logits of the next ones, (batch, steps, alphabet).

    Parameters
    ----------
    rate, decay, smoothing
        The highest learning rate of one cycle, the decay of weights, and the smoothing of labels.
    computing
        Makes the context in which the model computes, forward and backward.
    """
    text = torch.from_numpy(encode(learned_text()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=iterations)
    total = 0.0
    for iteration in range(iterations):
        starts = torch.randint(0, len(text) - steps - 1, (sequences,))
        windows = torch.stack([text[start : start + steps + 1] for start in starts])
        optimizer.zero_grad()
        with computing():
            logits = model(windows[:, :-1]).reshape(-1, len(ALPHABET))
            loss = nn.functional.cross_entropy(logits, windows[:, 1:].reshape(-1), label_smoothing=smoothing)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if iteration % _SHOWN == _SHOWN - 1:
            print(f"iteration {iteration + 1}: loss {total / _SHOWN:.3f}", flush=True)
            total = 0.0
