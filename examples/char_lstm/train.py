"""Train the character network with PyTorch and write ``weights.npz``: python examples/char_lstm/train.py"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import torch
from torch import nn

from examples.char_lstm.characters import ALPHABET, encode, learned_text
from examples.recurrent_training import LstmNetwork

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
    text = torch.from_numpy(encode(learned_text()))
    model = Writer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=ITERATIONS)
    total = 0.0
    for iteration in range(ITERATIONS):
        starts = torch.randint(0, len(text) - STEPS - 1, (SEQUENCES,))
        windows = torch.stack([text[start : start + STEPS + 1] for start in starts])
        optimizer.zero_grad()
        with model.rounded():
            logits = model(windows[:, :-1]).reshape(-1, len(ALPHABET))
            loss = nn.functional.cross_entropy(logits, windows[:, 1:].reshape(-1), label_smoothing=SMOOTHING)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if iteration % 100 == 99:
            print(f"iteration {iteration + 1}: loss {total / 100:.3f}", flush=True)
            total = 0.0
    model.save(Path(__file__).parent / "weights.npz")


if __name__ == "__main__":
    main()
