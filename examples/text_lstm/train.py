"""Train the text classifier with PyTorch and write ``weights.npz``: python examples/text_lstm/train.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from texts import WORDS, random_texts
from torch import nn

UNITS = 32
SMOOTHING = 0.05
"""Labels are so far from 0 and 1: the network need not be surer than that."""


class Classifier(nn.Module):
    """Embedding, LSTM, Dense."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, UNITS)
        self.lstm = nn.LSTM(UNITS, UNITS, batch_first=True)
        self.dense = nn.Linear(UNITS, 1)
        nn.init.normal_(self.embedding.weight, std=0.3)
        with torch.no_grad():
            self.lstm.bias_ih_l0[UNITS : 2 * UNITS] = 2.0  # remember, to begin with

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        """Logits, (batch,)."""
        _, (last, _) = self.lstm(self.embedding(texts))
        return self.dense(last[0])[:, 0]


def main() -> None:
    torch.manual_seed(0)
    held_texts, held_labels = (torch.from_numpy(item) for item in random_texts(1_000, seed=0))
    model = Classifier()
    epochs, batch = 14, 96
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    loss_function = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        texts, labels = (torch.from_numpy(item) for item in random_texts(24_000, seed=1 + epoch))
        total = 0.0
        for rows in torch.randperm(len(texts)).split(batch):
            optimizer.zero_grad()
            wanted = labels[rows] * (1 - 2 * SMOOTHING) + SMOOTHING
            loss = loss_function(model(texts[rows]), wanted)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        with torch.no_grad():
            right = ((model(held_texts) > 0) == (held_labels > 0.5)).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / len(texts):.4f}, right {right:.3f}", flush=True)
    arrays = {name: value.numpy().astype(np.float16) for name, value in model.state_dict().items()}
    # The largest array, as whole multiples of one number: a quarter of the bytes, and quantized already.
    embedding = model.embedding.weight.detach().numpy()
    scale = np.float32(np.abs(embedding).max() / 127)
    arrays["embedding.weight"] = np.rint(embedding / scale).astype(np.int8)
    np.savez_compressed(Path(__file__).parent / "weights.npz", **{"embedding.weight_scale": scale}, **arrays)


if __name__ == "__main__":
    main()
