"""Inputs for networks: not what they were trained for, but numbers of the right range that vary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scripts.zoo.catalogue import Input, Network

__all__ = ["samples"]


def samples(network: Network, count: int, seed: int) -> dict[str, NDArray[np.generic]]:
    """Inputs by name, of so many batch elements."""
    random = np.random.default_rng(seed)
    return {name: _sample(item, count, random) for name, item in network.inputs.items()}


def _sample(item: Input, count: int, random: np.random.Generator) -> NDArray[np.generic]:
    shape = (count, *item.shape) if item.has_batch else item.shape
    match item.kind:
        case "bytes":
            return random.integers(0, 256, shape).astype(np.int32)
        case "state":
            return (0.1 * random.normal(size=shape)).astype(np.float32)
        case "audio":
            times = np.arange(int(np.prod(item.shape)))
            frequencies = random.uniform(0.01, 0.3, (count, 1))
            sines = random.uniform(0.1, 0.8, (count, 1)) * np.sin(times * frequencies)
            return (sines + 0.05 * random.normal(size=sines.shape)).reshape(shape).astype(np.float32)
    return np.clip(0.5 * random.normal(size=shape), -1, 1).astype(np.float32)
