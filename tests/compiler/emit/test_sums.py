"""Places of sums in the accumulators."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from openmxu.arch import Config
from openmxu.compiler.emit.permute import _bands, _Block
from openmxu.compiler.emit.strip import Machine


def machine(size: int) -> Machine:
    nothing = SimpleNamespace()
    return Machine(Config.for_size(size, accumulator_rows=1024), nothing, nothing, nothing)


def test_sums_take_the_rows_that_have_waited_longest() -> None:
    own = machine(8)
    assert [own.take_sums(count) for count in (300, 300, 300, 300, 124)] == [0, 300, 600, 0, 300]


@pytest.mark.parametrize(("size", "places"), [(64, [512, 0, 512, 0, 512]), (8, [0, 480, 0, 400, 0])])
def test_long_sums_begin_a_half(size: int, places: list[int]) -> None:
    """Of a large array: no two that follow each other meet, whatever their lengths are."""
    own = machine(size)
    assert [own.take_sums(count) for count in (480, 490, 400, 500, 490)] == places


def test_permutations_are_cut_into_bands_of_a_size() -> None:
    (*bands,) = _bands([_Block(0, 1, 1100, ())], 512)
    assert [sum(block.count for block in band) for band in bands] == [367, 367, 366]
    (*bands,) = _bands([_Block(0, 10, 20, ()), _Block(200, 1, 100, ())], 512)
    assert [len(band) for band in bands] == [2]
