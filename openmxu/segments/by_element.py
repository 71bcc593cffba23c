"""Models that compute one batch element after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.host_segment import joined

__all__ = ["compute_by_element", "no_elements"]

Arrays = Mapping[str, NDArray[Any]]


def compute_by_element(
    inputs: Sequence[ArraySpec],
    outputs: Sequence[ArraySpec],
    values: Arrays,
    compute: Callable[[Arrays], dict[str, NDArray[Any]]],
) -> dict[str, NDArray[Any]]:
    """The outputs by name for inputs of any batch, from a function for a batch of one.

    Raises
    ------
    HostSegmentError
        The shape of an output depends on the data, and differs among the elements.
    """
    count = values[inputs[0].name].shape[inputs[0].batch_axis]
    parts = [
        compute({spec.name: np.take(values[spec.name], [i], spec.batch_axis) for spec in inputs}) for i in range(count)
    ]
    if not parts:
        return no_elements(outputs)
    return {spec.name: joined(spec.name, [part[spec.name] for part in parts], spec.batch_axis) for spec in outputs}


def no_elements(outputs: Sequence[ArraySpec]) -> dict[str, NDArray[Any]]:
    """The outputs of a batch of nothing."""
    return {spec.name: np.zeros(spec.full_shape(0), spec.dtype) for spec in outputs}
