"""Train the vision transformer with PyTorch and write ``weights.npz``.

    pip install '.[torch]'
    python examples/vision_transformer/train.py digits.npz
    python examples/vision_transformer/network.py --quantize

The data is what ``examples/mnist/train.py`` takes, and the same 500 digits are set aside.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import torch
from torch import nn

from examples.classifier import pixels
from examples.mnist.train import SEED, TEST_IMAGES, read
from examples.training import turned
from examples.transformer_layers import half_precision
from examples.transformer_training import Block
from examples.vision_transformer.network import BLOCKS, CHANNELS, HEADS, PATCH, TOKENS, WEIGHTS, WIDE

BATCH, RATE, DECAY, NOISE = 64, 1.5e-3, 0.05, 0.03


class VisionTransformer(nn.Module):
    """The network as it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(PATCH * PATCH, CHANNELS, bias=False)
        self.places = nn.Parameter(0.02 * torch.randn(TOKENS, CHANNELS))
        self.blocks = nn.ModuleList(Block(CHANNELS, HEADS, WIDE, NOISE) for _ in range(BLOCKS))
        self.last = nn.LayerNorm(CHANNELS)
        self.classes = nn.Linear(CHANNELS, 10, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of the ten digits."""
        side = images.shape[-1] // PATCH
        parts = images.reshape(-1, side, PATCH, side, PATCH).transpose(2, 3).reshape(-1, side * side, PATCH * PATCH)
        tokens = self.patches(parts) + self.places
        for block in self.blocks:
            tokens = block(tokens)
        return self.classes(self.last(tokens).mean(dim=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="archive or folder")
    parser.add_argument("--output", type=Path, default=WEIGHTS, help="file to write")
    parser.add_argument("--epochs", type=int, default=70, help="default: %(default)s")
    arguments = parser.parse_args()
    images, labels = read(arguments.data)
    order = np.random.default_rng(SEED).permutation(len(images))[TEST_IMAGES:]
    given = torch.from_numpy(pixels(images[order]))
    wanted = torch.from_numpy(labels[order].astype(np.int64))
    torch.manual_seed(SEED)
    model = VisionTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    steps = -(-len(given) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=arguments.epochs * steps)
    start = time.monotonic()
    for epoch in range(arguments.epochs):
        total = 0.0
        for rows in torch.randperm(len(given)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(turned(given[rows])), wanted[rows], label_smoothing=0.05)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}, {time.monotonic() - start:.0f} s", flush=True)
    np.savez_compressed(arguments.output, **half_precision({n: v.numpy() for n, v in model.state_dict().items()}))


if __name__ == "__main__":
    main()
