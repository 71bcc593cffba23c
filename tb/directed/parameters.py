"""Parameter sets as a Load_Parameters reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config

__all__ = ["parameter_set"]


def parameter_set(config: Config, bias: int, scale: float) -> NDArray[np.uint8]:
    """The eight rows of a parameter set that is the same in all columns, as one vector of bytes."""
    octets = np.concatenate([np.array([bias], "<i4").view(np.uint8), np.array([scale], "<f4").view(np.uint8)])
    return np.repeat(octets, config.size)
