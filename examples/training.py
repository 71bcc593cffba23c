"""Training with PyTorch: ``pip install '.[torch]'``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from examples.layers import (
    Conv,
    Dense,
    Flatten,
    GlobalAverage,
    Layer,
    MaxPool,
    Normalize,
    Parameters,
    Relu,
    Residual,
    Softmax,
)

__all__ = ["shifted_and_mirrored", "train", "turned"]

Augmentation = Callable[[torch.Tensor], torch.Tensor]
"""Other images of the same classes for images of shape (batch, channels, height, width)."""


def train(
    layers: Sequence[Layer],
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    augment: Augmentation,
    epochs: int,
    seed: int,
    batch: int = 64,
    rate: float = 4e-3,
) -> Parameters:
    """Train a network for classification.

    Parameters
    ----------
    images
        (count, channels, height, width).
    labels
        Their classes, (count,).
    rate
        The highest learning rate; it rises to it and falls to zero again.
    """
    torch.manual_seed(seed)
    module, _ = _sequence(layers, images.shape[1:])
    given, wanted = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=0.01)
    batches = len(images) // batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * batches)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    start = time.monotonic()
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(given)).split(batch)[:batches]:
            optimizer.zero_grad()
            error = loss(module(augment(given[rows])), wanted[rows])
            error.backward()
            optimizer.step()
            schedule.step()
            total += error.item()
        print(f"epoch {epoch + 1} of {epochs}: loss {total / batches:.4f}, ", end="")
        print(f"{time.monotonic() - start:.0f} s", flush=True)
    return {
        name: value.numpy() for name, value in module.state_dict().items() if not name.endswith("num_batches_tracked")
    }


def turned(images: torch.Tensor) -> torch.Tensor:
    """Images turned, scaled, slanted and shifted a little: handwriting."""
    count = len(images)

    def amounts(limit: float) -> torch.Tensor:
        return (2 * torch.rand(count) - 1) * limit

    angle, scale, slant = amounts(0.25), 1 + amounts(0.15), amounts(0.2)
    maps = torch.zeros(count, 2, 3)
    maps[:, 0, 0], maps[:, 0, 1] = angle.cos() * scale, slant - angle.sin() * scale
    maps[:, 1, 0], maps[:, 1, 1] = angle.sin() * scale, angle.cos() * scale
    maps[:, 0, 2], maps[:, 1, 2] = amounts(0.18), amounts(0.18)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def shifted_and_mirrored(images: torch.Tensor) -> torch.Tensor:
    """Images shifted by up to four pixels, and half of them mirrored: things."""
    count, _, height, width = images.shape
    padded = functional.pad(images, (4, 4, 4, 4))
    y, x = torch.randint(0, 9, (2, count)).tolist()
    shifted = torch.stack(
        [image[:, top : top + height, left : left + width] for image, top, left in zip(padded, y, x, strict=True)]
    )
    return torch.where((torch.rand(count) < 0.5)[:, None, None, None], shifted.flip(3), shifted)


class _Residual(nn.Module):
    def __init__(self, body: nn.Sequential, shortcut: nn.Sequential) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.body(values) + self.shortcut(values)


class _GlobalAverage(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values.mean(dim=(2, 3))


def _sequence(layers: Sequence[Layer], shape: tuple[int, ...]) -> tuple[nn.Sequential, tuple[int, ...]]:
    """PyTorch's modules, and the shape of what the last one makes."""
    modules = []
    for layer in layers:
        module = _module(layer, shape)
        with torch.no_grad():
            module.eval()
            shape = tuple(module(torch.zeros(1, *shape)).shape[1:])
            module.train()
        modules.append(module)
    return nn.Sequential(*modules), shape


def _module(layer: Layer, shape: tuple[int, ...]) -> nn.Module:
    match layer:
        case Conv():
            return nn.Conv2d(shape[0], layer.outputs, layer.kernel, layer.stride, layer.padding, bias=layer.bias)
        case Normalize():
            return nn.BatchNorm2d(shape[0])
        case Relu():
            return nn.ReLU()
        case MaxPool():
            return nn.MaxPool2d(layer.size)
        case GlobalAverage():
            return _GlobalAverage()
        case Flatten():
            return nn.Flatten()
        case Dense():
            return nn.Linear(shape[0], layer.outputs)
        case Softmax():
            # The loss begins with it.
            return nn.Identity()
        case Residual():
            return _Residual(_sequence(layer.body, shape)[0], _sequence(layer.shortcut, shape)[0])
