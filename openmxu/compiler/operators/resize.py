"""Resize to the nearest element, as ONNX Runtime computes coordinates: in float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.onnx.visit import Visit

__all__ = ["nearest_positions"]

_Coordinates = NDArray[np.float32]

_HALF = np.float32(0.5)

_FIRST_WITH_SIZES = 11
"""The opset in which Resize got sizes, a region of interest as second input, and ways to compute coordinates."""

_TRANSFORMS: dict[bytes, Callable[[_Coordinates, np.float32, int, int], _Coordinates]] = {
    b"half_pixel": lambda x, scale, before, after: (x + _HALF) / scale - _HALF,
    b"pytorch_half_pixel": lambda x, scale, before, after: (x + _HALF) / scale - _HALF if after > 1 else 0 * x,
    b"asymmetric": lambda x, scale, before, after: x / scale,
    b"align_corners": lambda x, scale, before, after: x * np.float32(before - 1) / np.float32(max(after - 1, 1)),
}
"""From the coordinate of a result, with the scale and the lengths before and after, to that of the tensor."""

_ROUNDINGS: dict[bytes, Callable[[_Coordinates], _Coordinates]] = {
    b"round_prefer_floor": lambda x: np.where(x == np.trunc(x) + _HALF, np.floor(x), np.floor(x + _HALF)),
    b"round_prefer_ceil": lambda x: np.floor(x + _HALF),
    b"floor": np.floor,
    b"ceil": np.ceil,
}


def nearest_positions(here: Visit, shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """For each dimension of a tensor behind the batch the positions that the results come from.

    Raises
    ------
    UnsupportedOperatorError
        The node does not take the nearest element, or changes the batch.
    """
    attributes = here.attributes
    mode = attributes.get("mode", b"nearest")
    if mode != b"nearest" or attributes.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        raise here.unsupported(f"supported: mode nearest without keep_aspect_ratio_policy, not mode {mode.decode()}")
    is_old = here.builder.opset < _FIRST_WITH_SIZES
    transform = attributes.get("coordinate_transformation_mode", b"asymmetric" if is_old else b"half_pixel")
    rounding = attributes.get("nearest_mode", b"floor" if is_old else b"round_prefer_floor")
    if transform not in _TRANSFORMS or rounding not in _ROUNDINGS:
        raise here.unsupported(f"coordinate_transformation_mode {transform.decode()} is not supported")
    positions = []
    for before, (after, scale) in zip(shape, _lengths(here, shape), strict=True):
        found = _TRANSFORMS[transform](np.arange(after, dtype=np.float32), scale, before, after)
        nearest = _ROUNDINGS[rounding](found.astype(np.float32)).astype(np.int64)
        positions.append(np.arange(before) if after == before and scale == 1 else np.clip(nearest, 0, before - 1))
    return positions


def _lengths(here: Visit, shape: tuple[int, ...]) -> list[tuple[int, np.float32]]:
    """Length and scale of each dimension behind the batch."""
    dimensions = 1 + len(shape)
    axes = [int(axis) % dimensions for axis in here.attributes.get("axes", range(dimensions))]
    index = 1 if here.builder.opset < _FIRST_WITH_SIZES else 2
    scales, sizes = (
        None if here.input(number) is None else here.constant(number, "its scales and sizes")
        for number in (index, index + 1)
    )
    if scales is None or scales.size == 0:
        scales = None
    given = scales if scales is not None else sizes
    if given is None or given.size != len(axes):
        raise here.unsupported("its scales or sizes must be constants, one for each dimension")
    found = [(length, np.float32(1)) for length in shape]
    for axis, value in zip(axes, given.tolist(), strict=True):
        if axis == 0:
            if value != (1 if scales is not None else here.builder.batch):
                raise here.unsupported("the batch must stay what it is")
            continue
        before = shape[axis - 1]
        scale = np.float32(value) if scales is not None else np.float32(value) / np.float32(before)
        after = int(np.floor(np.float32(before) * scale)) if scales is not None else int(value)
        if after < 1 or not scale > 0:
            raise here.unsupported(f"its scales and sizes must be positive, not {value}")
        found[axis - 1] = after, scale
    return found
