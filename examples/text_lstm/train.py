"""Train the text classifier with PyTorch and write ``weights.npz``: python examples/text_lstm/train.py"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import torch
from torch import nn

from examples.recurrent_training import LstmNetwork
from examples.text_lstm.texts import WORDS, random_texts

EMBEDDING = UNITS = 32
EPOCHS, TEXTS, BATCH = 12, 24_000, 128
RATE = 5e-3
SMOOTHING = 0.08
"""Labels are so far from 0 and 1: the network need not be surer than that."""

GATE_NOISE, STATE_NOISE, RESULT_NOISE = 0.1, 0.03, 0.1
"""The last one is added to what Dense reads."""


class Classifier(LstmNetwork):
    """The network as it learns."""

    def __init__(self) -> None:
        super().__init__(WORDS, EMBEDDING, UNITS, 1, 1, gate_noise=GATE_NOISE, state_noise=STATE_NOISE)
        nn.init.normal_(self.embedding.weight, std=0.3)
        with torch.no_grad():
            self.lstm.bias_ih_l0[UNITS : 2 * UNITS] = 2.0  # remember, to begin with

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        """Logits, (batch,)."""
        last = self.states(texts)[-1]
        if self.training:
            last = last + RESULT_NOISE * torch.randn_like(last)
        return self.dense(last)[:, 0]


def main() -> None:
    torch.manual_seed(0)
    held_texts, held_labels = (torch.from_numpy(item) for item in random_texts(1_000, seed=0))
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loss_function = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS):
        texts, labels = (torch.from_numpy(item) for item in random_texts(TEXTS, seed=1 + epoch))
        total = 0.0
        for rows in torch.randperm(TEXTS).split(BATCH):
            optimizer.zero_grad()
            wanted = labels[rows] * (1 - 2 * SMOOTHING) + SMOOTHING
            with model.rounded():
                loss = loss_function(model(texts[rows]), wanted)
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        model.eval()
        with torch.no_grad(), model.rounded():
            right = ((model(held_texts) > 0) == (held_labels > 0.5)).float().mean().item()
        model.train()
        print(f"epoch {epoch + 1}: loss {total / TEXTS:.4f}, right {right:.3f}", flush=True)
    model.save(Path(__file__).parent / "weights.npz")


if __name__ == "__main__":
    main()
