"""Train the character transformer with PyTorch and write ``weights.npz``: python examples/char_transformer/train.py"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import torch
from torch import nn

from examples.char_lstm.characters import ALPHABET
from examples.char_transformer.network import BLOCKS, CHANNELS, HEADS, WEIGHTS, WIDE, WINDOW
from examples.text_training import learn_text
from examples.transformer_layers import half_precision
from examples.transformer_training import Block

ITERATIONS, SEQUENCES, STEPS = 1_500, 24, 128
RATE, DECAY, SMOOTHING, NOISE, DROPOUT = 3e-3, 0.1, 0.05, 0.03, 0.1


class Writer(nn.Module):
    """The network as it learns: every character attends to the window that ends with it, of which what lies before the
    first character has keys and values of zero."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), CHANNELS)
        self.blocks = nn.ModuleList(Block(CHANNELS, HEADS, WIDE, NOISE) for _ in range(BLOCKS))
        # For each head what is added to the score of each place in the window, the new character last.
        self.distances = nn.ParameterList(torch.zeros(HEADS, WINDOW) for _ in range(BLOCKS))
        self.last = nn.LayerNorm(CHANNELS)
        self.characters = nn.Linear(CHANNELS, len(ALPHABET), bias=False)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Logits of the next characters, (batch, steps, alphabet)."""
        tokens = self.dropout(self.embedding(characters))
        for block, distances in zip(self.blocks, self.distances, strict=True):
            tokens = self.dropout(block.windowed(tokens, distances))
        return self.characters(self.last(tokens))


def main() -> None:
    torch.manual_seed(0)
    model = Writer()
    learn_text(
        model,
        iterations=ITERATIONS,
        sequences=SEQUENCES,
        steps=STEPS,
        rate=RATE,
        decay=DECAY,
        smoothing=SMOOTHING,
    )
    np.savez_compressed(WEIGHTS, **half_precision({n: v.numpy() for n, v in model.state_dict().items()}))


if __name__ == "__main__":
    main()
