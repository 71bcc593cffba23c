"""Random walks over planes, and their expected positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

from tb.bench import CONFIG

__all__ = ["Position", "positions", "random_walk"]


@dataclass(frozen=True)
class Position:
    """A step of a walk. ``address`` is ``None`` outside the plane, where it has no meaning; ``target`` is ``None`` in
    walks without targets."""

    address: int | None
    last: bool
    begins: bool
    ends: bool
    repeat: int
    target: int | None
    first: bool

    @property
    def inside(self) -> bool:
        """Whether the position lies inside the plane."""
        return self.address is not None


def positions(walk: Mapping[str, int], address_width: int) -> Iterator[Position]:
    """Every position of ``walk``, which has the members of :func:`openmxu.rtl.common.address_generator.walk_layout`."""
    height, width = walk.get("window_height", 1), walk.get("window_width", 1)
    repeats = walk.get("repeats", 0)
    places = 1 << CONFIG.accumulator_address_width
    for output in range(walk["rows"]):
        target = (walk["target"] + output) % places if "target" in walk else None
        row, column = divmod(output, walk["width"]) if walk["is_plane"] else (0, output)
        for repeat in range(repeats + 1):
            for wy in range(height):
                for wx in range(width):
                    # Distance from the first position, in rows and columns of the plane.
                    dy, dx = row * walk["stride_y"] + wy, column * walk["stride_x"] + wx
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
                        target=target,
                        first=begins and output == repeat == 0,
                    )


def random_walk(rng: np.random.Generator, layout: data.StructLayout, most_rows: int) -> dict[str, int]:
    """A walk over a plane or along consecutive rows. Unused members are random."""
    width = {name: Shape.cast(field.shape).width for name, field in layout}
    walk = {name: int.from_bytes(rng.bytes(8), "little") % (1 << bits) for name, bits in width.items()}
    most = min(most_rows, (1 << width["rows"]) - 1)
    windows = "window_height" in walk
    if windows:
        walk |= {"window_height": 1, "window_width": 1, "repeats": int(rng.choice([0, 0, 1, 3]))}
    walk["is_plane"] = int(rng.random() < 0.75)
    if not walk["is_plane"]:
        rows = int(rng.choice([1, 1, 2, 3, rng.integers(1, 20)]))
        return walk | {"rows": min(most, rows), "stride_x": 1}

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
