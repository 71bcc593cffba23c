"""Random walks over planes, and their expected positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

from openmxu.arch import isa
from tb.bench import CONFIG

__all__ = ["Position", "is_by_parity", "positions", "random_walk"]


@dataclass(frozen=True)
class Position:
    """A step of a walk. ``address`` is ``None`` outside the plane, where it has no meaning; ``target`` is ``None`` in
    walks without targets, and ``turns`` in the last output."""

    address: int | None
    last: bool
    begins: bool
    ends: bool
    repeat: int
    turns: bool | None
    target: int | None
    first: bool

    @property
    def inside(self) -> bool:
        """Whether the position lies inside the plane."""
        return self.address is not None


def is_by_parity(
    *, from_unified_buffer: bool, pooling: isa.Pooling, operand: isa.Operand, output: isa.OutputFormat
) -> bool:
    """Whether an Activate takes every other row first: one of accumulator rows to single bytes, which takes an even
    number of cycles for each."""
    is_plain = not from_unified_buffer and pooling == isa.Pooling.NONE and operand == isa.Operand.NONE
    return is_plain and output == isa.OutputFormat.BYTE and CONFIG.column_groups % 2 == 0


def positions(walk: Mapping[str, int], address_width: int) -> Iterator[Position]:
    """Every position of ``walk``, which has the members of :func:`openmxu.rtl.common.address_generator.walk_layout`."""
    height, width = walk.get("window_height", 1), walk.get("window_width", 1)
    repeats = walk.get("repeats", 0)
    places = 1 << CONFIG.accumulator_address_width
    for output in range(walk["rows"]):
        target = (walk["target"] + output) % places if "target" in walk else None
        row, column = divmod(output, walk["width"]) if walk["is_plane"] else (0, place_of(walk, output))
        turns = bool(walk.get("by_parity") and output == walk["width"] - 1)
        for repeat in range(repeats + 1):
            for wy in range(height):
                for wx in range(width):
                    # Distance from the first position, in rows and columns of the plane.
                    stride_x = walk["stride_x"] if walk["is_plane"] else 1
                    dy, dx = row * walk["stride_y"] + wy, column * stride_x + wx
                    y, x = walk["y"] + dy, walk["x"] + dx
                    inside = 0 <= y < walk["plane_height"] and 0 <= x < walk["plane_width"]
                    address = walk["address"] + ((dy * walk["plane_width"] + dx) << walk["wide"])
                    begins, ends = wy == wx == 0, wy == height - 1 and wx == width - 1
                    yield Position(
                        address=address % (1 << address_width) if inside or not walk["is_plane"] else None,
                        last=ends and repeat == repeats and output == walk["rows"] - 1,
                        begins=begins,
                        ends=ends,
                        repeat=repeat,
                        turns=None if output == walk["rows"] - 1 else turns,
                        target=target,
                        first=begins and output == repeat == 0,
                    )


def place_of(walk: Mapping[str, int], output: int) -> int:
    """Place of an output of a walk without a plane: every other place comes first in one by parity."""
    if not walk.get("by_parity"):
        return output
    return 2 * output if output < walk["width"] else 2 * (output - walk["width"]) + 1


def random_walk(rng: np.random.Generator, layout: data.StructLayout, most_rows: int) -> dict[str, int]:
    """A walk over a plane, along consecutive rows, or by parity. Unused members are random."""
    width = {name: Shape.cast(field.shape).width for name, field in layout}
    walk = {name: int.from_bytes(rng.bytes(8), "little") % (1 << bits) for name, bits in width.items()}
    most = min(most_rows, (1 << width["rows"]) - 1)
    windows = "window_height" in walk
    if windows:
        walk |= {"window_height": 1, "window_width": 1, "repeats": int(rng.choice([0, 0, 1, 3]))}
    walk["is_plane"] = int(rng.random() < 0.75)
    if not walk["is_plane"]:
        rows = min(most, int(rng.choice([1, 1, 2, 3, rng.integers(1, 20)])))
        if not windows:
            return walk | {"rows": rows, "stride_x": 1}
        by_parity = int(rng.integers(2))
        walk |= {"rows": rows, "by_parity": by_parity, "stride_x": 1 + by_parity}
        return walk | ({"width": -(-rows // 2), "wide": 0} if by_parity else {})

    if windows:
        walk["by_parity"] = 0
    walk["width"] = min(most, int(rng.choice([1, 2, rng.integers(1, 8)])))
    walk["rows"] = min(most, walk["width"] * int(rng.choice([1, rng.integers(1, 5)])))
    for name, size in (("y", "plane_height"), ("x", "plane_width")):
        walk[size] = int(rng.choice([rng.integers(1, 6), rng.integers(1, CONFIG.unified_buffer_rows + 1)]))
        near = rng.integers(-4, 4)
        walk[name] = int(rng.choice([0, 0, near, near + walk[size], -(1 << 15), (1 << 15) - 1]))
        walk["stride_" + name] = int(rng.choice([0, 1, 1, 2, 3, 255, rng.integers(0, 256)]))
    if windows:
        for name in ("window_height", "window_width"):
            walk[name] = int(rng.choice([1, 1, 2, 3, rng.integers(1, 7)]))
    walk["pitch"] = walk["stride_y"] * walk["plane_width"] % (1 << width["pitch"])
    return walk
