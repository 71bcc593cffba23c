"""Encoding of weights as bytes of tiles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openmxu.arch.numerics import operand
from openmxu.compiler import gemm_network
from openmxu.compiler.emit.tiles import kernel_tiles
from openmxu.compiler.emit.weights import byte_parts


@pytest.mark.parametrize(
    ("low", "high", "parts"),
    [(-128, 127, 1), (0, 255, 1), (-255, 0, 1), (-100, 155, 1), (-200, 200, 2), (-255, 255, 3)],
)
def test_parts_add_up(low: int, high: int, parts: int) -> None:
    weights = np.random.default_rng(0).integers(low, high + 1, (10, 7)).astype(np.int16)
    weights[0, 0], weights[0, 1] = low, high
    format, found = byte_parts(weights)
    assert len(found) == parts
    raw = [((part + format.zero_point) & 0xFF).astype(np.uint8) for part in found]
    assert (sum(operand(part, format.zero_point, format.signed) for part in raw) == weights).all()


@pytest.mark.parametrize("together", [1, 2, 3])
@pytest.mark.parametrize("apart", [False, True])
def test_tiles_of_a_group_lie_side_by_side(together: int, apart: bool) -> None:
    """A matrix of 8 × 12 at S = 4: two planes, three output tiles."""
    weights = np.arange(96, dtype=np.int16).reshape(8, 12)
    operation = dataclasses.replace(
        gemm_network(4, 8, 12).operations[0], weights=weights.T[:, :, np.newaxis, np.newaxis]
    )
    tiles = kernel_tiles(operation, 4, together, apart=apart)
    stored = list(tiles.bytes())
    assert len(stored) == (2 if apart else 1) * tiles.count()
    steps = [(group, step) for group in tiles.groups for step in tiles.steps(group)]
    assert [len(group) for group in tiles.groups] == [together, *[1] * (3 - together)]
    assert [step.tile for group, step in steps if group.start == 0] == list(range(together)) * 2
    numbers = [number for group in tiles.groups for number in tiles.numbers(group)]
    assert numbers == list(range(tiles.count()))
    for group in (*tiles.groups, *(tiles.singles if apart else ())):
        for number, step in zip(tiles.numbers(group), tiles.steps(group), strict=True):
            rows, columns = slice(4 * step.plane, 4 * step.plane + 4), slice(4 * step.tile, 4 * step.tile + 4)
            assert (stored[number] == weights[rows, columns]).all()
