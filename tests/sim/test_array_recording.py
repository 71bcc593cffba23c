"""Recordings of the array: the registers of its elements hold what the product needs."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.sim.array_recording import MOST_ROWS, ArrayRecording, record_product

# Size, M, K, N: two tiles in K; fewer rows than the array has, in two blocks, with sizes that fill no tile; one number.
SHAPES = [(4, 6, 8, 4), (4, 3, 5, 6), (2, 1, 1, 1)]


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def recording(request: pytest.FixtureRequest) -> ArrayRecording:
    size, rows, inner, columns = request.param
    rng = np.random.default_rng(1)
    return record_product(rng.integers(-128, 128, (rows, inner)), rng.integers(-128, 128, (inner, columns)), size)


def test_sums_that_leave_are_the_product(recording: ArrayRecording) -> None:
    assert np.array_equal(recording.product, recording.left @ recording.right)


def test_elements_multiply_each_row_by_its_tile(recording: ArrayRecording) -> None:
    size, (height, inner) = recording.size, recording.left.shape
    depth = -(-inner // size)
    left = np.pad(recording.left, ((0, 0), (0, depth * size - inner)))
    cycles, rows, columns = np.nonzero(recording.rows >= 0)
    passes, numbers = np.divmod(recording.rows[cycles, rows, columns], height)
    assert np.array_equal(recording.weights[cycles, rows, columns], recording.tiles[passes, rows, columns])
    assert np.array_equal(recording.activations[cycles, rows, columns], left[numbers, passes % depth * size + rows])
    # Every row passes every element.
    assert len(cycles) == len(recording.tiles) * height * size * size


def test_partial_sums_grow_from_element_to_element(recording: ArrayRecording) -> None:
    size, (height, inner) = recording.size, recording.left.shape
    depth = -(-inner // size)
    left = np.pad(recording.left, ((0, 0), (0, depth * size - inner)))
    for cycle, row, column in np.argwhere(recording.sum_rows >= 0):
        tile, number = divmod(recording.sum_rows[cycle, row, column], height)
        first = tile % depth * size
        expected = left[number, first : first + row + 1] @ recording.tiles[tile, : row + 1, column]
        assert recording.partial_sums[cycle, row, column] == expected


def test_each_element_swaps_once_for_each_tile_and_shifts_before(recording: ArrayRecording) -> None:
    tiles = len(recording.tiles)
    assert (recording.swapped.sum(axis=0) == tiles).all()
    assert (recording.shifted.sum(axis=0) == tiles * (recording.size - np.arange(recording.size))[:, None]).all()
    for cycle, row, column in np.argwhere(recording.swapped):
        assert recording.weights[cycle, row, column] == recording.next_weights[cycle - 1, row, column]


def test_the_next_tile_enters_while_rows_are_multiplied() -> None:
    recording = record_product(np.ones((6, 8), int), np.ones((8, 4), int), 4)
    assert (recording.shifted[:, 3, 3] & (recording.rows[:, 3, 3] >= 0)).any()
    entering = recording.entering[recording.entering.argmax() - 11 :][:12]
    assert entering.tolist() == list(range(12))


@pytest.mark.parametrize(
    ("left", "right", "size", "message"),
    [
        (np.zeros((2, 2), int), np.zeros((2, 2), int), 16, "2 × 2, 4 × 4 or 8 × 8 to be shown, not 16 × 16"),
        (np.zeros((2, 2), int), np.zeros((3, 2), int), 4, "2 columns of the left matrix do not fit 3 rows"),
        (np.zeros((0, 2), int), np.zeros((2, 2), int), 4, r"the left matrix must have rows and columns.*\(0, 2\)"),
        (np.zeros((2, 2), int), np.full((2, 2), 128), 4, "the right matrix must hold int8, not 128 to 128"),
        (np.zeros((MOST_ROWS + 1, 4), int), np.zeros((4, 4), int), 4, f"1 tiles × 129 rows are more than {MOST_ROWS}"),
    ],
)
def test_bad_products_are_refused(left: np.ndarray, right: np.ndarray, size: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record_product(left, right, size)
