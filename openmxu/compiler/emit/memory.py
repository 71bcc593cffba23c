"""What lies in host and weight memory, and whether addresses reach it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.errors import CapacityError

__all__ = ["ALIGNMENT", "aligned", "check_addresses", "parameter_bytes"]

ALIGNMENT = 64
"""Bytes that tensors in host memory begin at multiples of: the widest beat."""


def aligned(length: int) -> int:
    """Bytes from the beginning of something in host memory to where the next may begin."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def parameter_bytes(bias: NDArray[np.int32], scale: NDArray[np.float32] | None, size: int) -> NDArray[np.uint8]:
    """Parameter sets of S columns each, for as many columns as ``bias`` has; columns beyond them are 0.

    A set is, column by column, the four bytes of the bias, then those of the scale, lowest first.
    """
    sets = -(-bias.size // size)
    columns = np.zeros((sets * size, 8), np.uint8)
    columns[: bias.size, :4] = _bytes(bias.astype("<i4"))
    if scale is not None:
        columns[: bias.size, 4:] = _bytes(scale.astype("<f4"))
    return columns.reshape(sets, size, 8).transpose(0, 2, 1).reshape(-1)


def _bytes(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4)


def check_addresses(host_bytes: int, weight_bytes: int, config: Config) -> None:
    """Check that address ports reach so many bytes.

    Raises
    ------
    CapacityError
        One does not.
    """
    for what, size, name in (
        ("host", host_bytes, "host_address_width"),
        ("weight", weight_bytes, "weight_address_width"),
    ):
        width = getattr(config, name)
        if size > 1 << width:
            raise CapacityError(
                f"the program needs {size} bytes of {what} memory, but {name} {width} reaches {1 << width}"
            )
