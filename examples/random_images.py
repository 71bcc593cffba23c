"""Images of nothing, with what makes real ones hard: objects with edges, shades, contrasts that differ, and noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_images"]

_SHAPES = 4
"""Most objects of an image."""


def random_images(count: int, channels: int, size: int, seed: int) -> NDArray[np.uint8]:
    """``count`` seeded images of ``size`` × ``size`` pixels, uint8 (count, channels, size, size)."""
    random = np.random.default_rng(seed)
    return np.stack([_image(channels, size, random) for _ in range(count)])


def _image(channels: int, size: int, random: np.random.Generator) -> NDArray[np.uint8]:
    y, x = np.mgrid[0:size, 0:size] / size
    image = np.empty((channels, size, size))
    for channel in image:
        slope = random.normal(0, 60, 2)
        channel[:] = random.uniform(40, 215) + slope[0] * (y - 0.5) + slope[1] * (x - 0.5)
    for _ in range(random.integers(1, _SHAPES + 1)):
        inside = _shape(y, x, random)
        wave = np.sin(2 * np.pi * (random.normal(0, 4) * y + random.normal(0, 4) * x))
        color = random.uniform(0, 255, channels)[:, np.newaxis, np.newaxis]
        image = np.where(inside, color + random.uniform(0, 60) * wave, image)
    image = image.mean() + (image - image.mean()) * random.uniform(0.5, 1.2)
    return np.clip(np.rint(image + random.normal(0, random.uniform(0, 12), image.shape)), 0, 255).astype(np.uint8)


def _shape(y: NDArray[np.float64], x: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.bool_]:
    """The pixels of an ellipse or a rectangle, turned by any angle."""
    center, radius, angle = random.uniform(0.2, 0.8, 2), random.uniform(0.1, 0.4, 2), random.uniform(0, np.pi)
    dy, dx = y - center[0], x - center[1]
    u = (dy * np.cos(angle) + dx * np.sin(angle)) / radius[0]
    v = (dx * np.cos(angle) - dy * np.sin(angle)) / radius[1]
    return u**2 + v**2 < 1 if random.random() < 0.5 else np.maximum(abs(u), abs(v)) < 1
