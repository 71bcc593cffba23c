"""Conversion of payloads between plain Python values and the integers that cocotb uses for ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from amaranth.hdl import Shape, ShapeLike
from amaranth.lib import data
from numpy.typing import NDArray

__all__ = ["bytes_of", "pack", "pack_lanes", "row_of", "unpack", "unpack_lanes"]


def pack(shape: ShapeLike, value: Any) -> int:
    """Encode ``value``: an int, or a mapping or sequence for a struct or array. Missing fields are 0."""
    if isinstance(value, (Mapping, Sequence)):
        layout = data.Layout.cast(shape)
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        return sum(pack(layout[key].shape, item) << layout[key].offset for key, item in items)
    return int(value) & ((1 << Shape.cast(shape).width) - 1)


def unpack(shape: ShapeLike, bits: int) -> Any:
    """Decode ``bits``: an int, a namespace for a struct, a list for an array."""
    if _is_layout(shape):
        layout = data.Layout.cast(shape)
        values = {key: unpack(field.shape, bits >> field.offset & ((1 << field.width) - 1)) for key, field in layout}
        return list(values.values()) if isinstance(layout, data.ArrayLayout) else SimpleNamespace(**values)
    plain = Shape.cast(shape)
    if plain.signed and bits >> (plain.width - 1):
        bits -= 1 << plain.width
    return bits


def _is_layout(shape: ShapeLike) -> bool:
    return isinstance(shape, data.Layout) or (isinstance(shape, type) and issubclass(shape, data.View))


def row_of(values: NDArray[np.uint8]) -> int:
    """A row of bytes as a payload, with byte 0 in the lowest bits."""
    return int.from_bytes(values.tobytes(), "little")


def bytes_of(row: int, size: int) -> NDArray[np.uint8]:
    """The bytes of a payload."""
    return np.frombuffer(row.to_bytes(size, "little"), np.uint8)


def pack_lanes(values: NDArray[np.integer], width: int) -> list[int]:
    """Encode each row of an array (cycles, lanes) as an integer, with ``width`` bits for each lane."""
    mask = (1 << width) - 1
    return [sum((lane & mask) << (index * width) for index, lane in enumerate(lanes)) for lanes in values.tolist()]


def unpack_lanes(payloads: Iterable[int], lanes: int, width: int, *, signed: bool) -> NDArray[np.int64]:
    """Decode what :func:`pack_lanes` encoded: an array (cycles, lanes)."""
    mask = (1 << width) - 1
    values = np.array([[payload >> (index * width) & mask for index in range(lanes)] for payload in payloads], np.int64)
    values = values.reshape(-1, lanes)
    return np.where(values >> (width - 1) != 0, values - (1 << width), values) if signed else values
