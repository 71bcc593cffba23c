"""Train the character network with PyTorch and write ``weights.npz``: python examples/char_lstm/train.py

Weights are rounded to what int8 holds while the network learns, the way :func:`openmxu.quantize` rounds them, so that
it learns to live with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from characters import ALPHABET, encode, learned_text
from torch import nn

EMBEDDING, UNITS = 64, 128
ITERATIONS, SEQUENCES, STEPS = 2_500, 32, 96
DROPOUT, DECAY, SMOOTHING, NOISE = 0.25, 0.5, 0.1, 0.15
"""What keeps weights small, and the network from learning the text by heart and from counting on small differences."""


class Writer(nn.Module):
    """Embedding, two LSTM layers, Dense."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, UNITS, num_layers=2, batch_first=True, dropout=DROPOUT)
        self.dropout = nn.Dropout(DROPOUT)
        self.dense = nn.Linear(UNITS, len(ALPHABET))

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Logits of the next characters, (batch, steps, alphabet)."""
        states = self.lstm(self.dropout(self.embedding(characters)))[0]
        return self.dense(self.dropout(states + NOISE * torch.randn_like(states)))

    @contextmanager
    def rounded(self) -> Iterator[None]:
        """A block in which weights are whole multiples of their scales; gradients are those of the rounded ones."""
        kept = {name: value.data for name, value in self.named_parameters()}
        with torch.no_grad():
            embedding = self.embedding.weight
            scale = embedding.abs().max() / 127
            embedding.data = (embedding / scale).round() * scale
            self.dense.weight.data = _rounded(self.dense.weight.data, 1.0)[0]
            for layer, factor in enumerate((float(scale), 1 / 127)):
                pair = [getattr(self.lstm, f"weight_{kind}_l{layer}") for kind in ("ih", "hh")]
                rounded = _rounded(pair[0].data, factor, pair[1].data, 1 / 127)
                for weight, value in zip(pair, rounded, strict=True):
                    weight.data = value
        yield
        for name, value in self.named_parameters():
            value.data = kept[name]


def _rounded(first: torch.Tensor, factor: float, *others: torch.Tensor | float) -> list[torch.Tensor]:
    """Weights, each followed by the scale of what it multiplies, rounded so that products mean the same in a row."""
    weights, factors = [first, *others[::2]], [factor, *others[1::2]]
    products = [
        (weight * scale).abs().amax(dim=1, keepdim=True) for weight, scale in zip(weights, factors, strict=True)
    ]
    product = torch.stack(products).amax(dim=0) / 127
    return [
        (weight * scale / product).round() * product / scale for weight, scale in zip(weights, factors, strict=True)
    ]


def main() -> None:
    torch.manual_seed(0)
    text = torch.from_numpy(encode(learned_text()))
    model = Writer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=ITERATIONS)
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
    with model.rounded():
        arrays = {name: value.detach().numpy().astype(np.float16) for name, value in model.named_parameters()}
        embedding = model.embedding.weight.detach().numpy()
        scale = np.float32(np.abs(embedding).max() / 127)
        arrays["embedding.weight"] = np.rint(embedding / scale).astype(np.int8)
    np.savez_compressed(Path(__file__).parent / "weights.npz", **{"embedding.weight_scale": scale}, **arrays)


if __name__ == "__main__":
    main()
