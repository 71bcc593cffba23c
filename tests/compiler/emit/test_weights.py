"""Encoding of weights as bytes of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.numerics import operand
from openmxu.compiler.emit.weights import encode_weights


@pytest.mark.parametrize(
    ("low", "high", "parts"),
    [(-128, 127, 1), (0, 255, 1), (-255, 0, 1), (-100, 155, 1), (-200, 200, 2), (-255, 255, 3)],
)
def test_parts_add_up(low: int, high: int, parts: int) -> None:
    weights = np.random.default_rng(0).integers(low, high + 1, (10, 7)).astype(np.int16)
    weights[0, 0], weights[0, 1] = low, high
    encoded = encode_weights(weights, 4)
    assert encoded.parts.shape == (parts, 12, 8)
    assert (encoded.planes, encoded.tiles) == (3, 2)
    total = sum(operand(part, encoded.format.zero_point, encoded.format.signed) for part in encoded.parts)
    assert (total[:10, :7] == weights).all()
    assert not total[10:].any()
    assert not total[:, 7:].any()


def test_tile_is_a_square_of_the_matrix() -> None:
    weights = np.arange(64, dtype=np.int16).reshape(8, 8)
    assert (encode_weights(weights, 4).tile(0, 1, 0) == weights[4:, :4]).all()
