"""Bands of outputs cover a strip exactly once, fit into the accumulators, and are small at both ends of a program."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import conv_network
from openmxu.compiler.ir.fusion import fuse
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.bands import bands
from openmxu.compiler.plan.buffers import Region


def cut(images: int, height: int, width: int, pool: int, config: Config, ramp: bool = True, taper: bool = True):
    network = conv_network(4, 4, height, width, kernel=3, stride=1, pool=pool)
    operation = fuse(network, Config()).operations[0]
    strip = Region(range(images), range(height // pool), range(width // pool))
    return bands(operation, strip, (height, width), config, ramp=ramp, taper=taper)


@pytest.mark.parametrize("pool", [1, 2, 3])
@pytest.mark.parametrize(("images", "height", "width"), [(1, 32, 32), (7, 3, 5), (3, 12, 40), (40, 3, 3)])
@pytest.mark.parametrize("accumulator_rows", [256, 1024])
def test_every_output_once(images: int, height: int, width: int, pool: int, accumulator_rows: int) -> None:
    config = Config(accumulator_rows=accumulator_rows)
    seen = np.zeros((images, height // pool, width // pool), int)
    for pieces in cut(images, height, width, pool, config):
        assert 0 < sum(piece.positions for piece in pieces) <= accumulator_rows // 2
        for piece in pieces:
            target = slice(piece.target_rows.start, piece.target_rows.stop)
            seen[piece.image, target, piece.target_columns.start : piece.target_columns.stop] += 1
            assert piece.rows.start == pool * piece.target_rows.start
            assert piece.rows.stop == pool * piece.target_rows.stop
    assert (seen == 1).all()


def test_rows_wider_than_the_accumulators() -> None:
    pieces = [piece for band in cut(1, 2, 100, 1, Config(accumulator_rows=64)) for piece in band]
    assert [len(piece.columns) for piece in pieces] == [32, 32, 32, 4] * 2


def test_bands_grow_and_shrink() -> None:
    sizes = [sum(piece.positions for piece in pieces) for pieces in cut(1, 32, 32, 2, Config.for_size(16))]
    assert sizes == [64, 128, 192, 256, 192, 128, 64]
    sizes = [
        sum(piece.positions for piece in pieces)
        for pieces in cut(1, 32, 32, 2, Config.for_size(16), ramp=False, taper=False)
    ]
    assert sizes == [512, 512]


def test_small_images_share_a_band() -> None:
    pieces = cut(20, 3, 3, 1, Config(), ramp=False, taper=False)
    assert [[piece.image for piece in band] for band in pieces] == [list(range(20))]


def test_large_images_have_bands_of_their_own() -> None:
    pieces = cut(3, 10, 10, 1, Config.for_size(8), ramp=False, taper=False)
    assert [{piece.image for piece in band} for band in pieces] == [{0}, {1}, {2}]


def test_bands_of_an_image_are_alike() -> None:
    pieces = cut(2, 13, 20, 1, Config.for_size(8, accumulator_rows=512), ramp=False, taper=False)
    assert [(band[0].image, len(band[0].rows)) for band in pieces] == [(0, 7), (0, 6), (1, 7), (1, 6)]


def test_windows() -> None:
    window = Window(3, 2, stride_y=2, stride_x=3, dilation_y=2, top=1, right=1)
    assert (window.span_y, window.span_x) == (5, 2)
    assert window.outputs(10, 9) == (4, 3)
    assert window.rows(range(1), 10) == range(4)
    assert window.rows(range(1, 4), 10) == range(1, 10)
    assert window.columns(range(2, 3), 9) == range(6, 8)
    # At least one row, even if none is needed, because a plane has at least one.
    assert Window(1, 1, top=4).rows(range(2), 10) == range(1)
