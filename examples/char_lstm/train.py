"""Train the character network with PyTorch and write ``weights.npz``: python examples/char_lstm/train.py"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import torch

from examples.char_lstm.characters import ALPHABET
from examples.recurrent_training import LstmNetwork
from examples.text_training import learn_text

EMBEDDING, UNITS, LAYERS = 64, 128, 2
ITERATIONS, SEQUENCES, STEPS = 2_000, 32, 80
RATE = 5e-3
DROPOUT, DECAY, SMOOTHING = 0.15, 0.3, 0.15
"""What keeps weights small, and the network from learning the text by heart."""

GATE_NOISE, STATE_NOISE, RESULT_NOISE = 0.25, 0.08, 0.5
"""The last one is added to what Dense reads."""


class Writer(LstmNetwork):
    """The network as it learns."""

    def __init__(self) -> None:
        noise = {"gate_noise": GATE_NOISE, "state_noise": STATE_NOISE}
        super().__init__(len(ALPHABET), EMBEDDING, UNITS, LAYERS, len(ALPHABET), dropout=DROPOUT, **noise)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Logits of the next characters, (batch, steps, alphabet)."""
        states = self.states(characters)
        states = self.dropout(states + RESULT_NOISE * torch.randn_like(states))
        return self.dense(states).transpose(0, 1)


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
        computing=model.rounded,
    )
    model.save(Path(__file__).parent / "weights.npz")


if __name__ == "__main__":
    main()
