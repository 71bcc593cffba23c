"""Chunks of work for the activation unit are placed between the bands of a convolution."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network
from openmxu.compiler.emit.deferred_activations import Chunk, DeferredActivations, Touch
from openmxu.compiler.emit.tasks import Rows
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import residual_block

ROWS = 100


def touch(reads: tuple[int, int] | None, writes: tuple[int, int] | None) -> Touch:
    """A touch of two ranges of rows, each given by first row and count."""
    return Touch(*((Rows(*pair),) if pair else () for pair in (reads, writes)))


def emitted(chunks: list[Touch], *steps: list[Touch]) -> list[list[int]]:
    """The numbers of the chunks emitted at each step; a step is given by the work still ahead."""
    order: list[int] = []
    deferred = DeferredActivations(
        [Chunk(item, functools.partial(order.append, n)) for n, item in enumerate(chunks)], ROWS
    )
    result = []
    for ahead in steps:
        deferred.advance(ahead)
        result.append(order.copy())
        order.clear()
    return result


@pytest.mark.parametrize(
    ("band", "waits"),
    [
        (touch(None, (9, 5)), True),  # writes what the chunk reads
        (touch(None, (29, 5)), True),  # writes what the chunk writes
        (touch((29, 5), None), True),  # reads what the chunk writes
        (touch((9, 5), None), False),  # reads what the chunk reads
        (touch((20, 10), (30, 10)), True),
        (touch((30, 10), (20, 0)), False),
    ],
)
def test_rows_of_bands(band: Touch, waits: bool) -> None:
    chunk = touch((10, 10), (29, 1))
    assert emitted([chunk], [band], []) == [[] if waits else [0], [0] if waits else []]


def test_chunks_wait_for_chunks() -> None:
    """The second chunk reads results of the first one; the third one is independent of both."""
    chunks = [touch((0, 10), (10, 10)), touch((10, 10), (20, 10)), touch((40, 10), (50, 10))]
    assert emitted(chunks, [touch(None, (5, 1))], []) == [[2], [0, 1]]


def layers_of_activations(config: Config, batch: int) -> list[int]:
    """For each Activate of a residual block, in order, the number of its operation."""
    program = compile_network(residual_block(), config, batch=batch, effort=0)
    pairs = zip(program.instructions, program.layer_numbers, strict=True)
    return [int(layer) for item, layer in pairs if item.word & 0xFF == Opcode.ACTIVATE]


CONFIG = Config(size=4, activation_lanes=1, accumulator_rows=256)


def test_sums_of_one_image_while_the_array_works_on_the_next() -> None:
    """Operation 1 is the second convolution, operation 2 the sum of its result and the input."""
    order = layers_of_activations(CONFIG, batch=3)
    assert order.index(2) < len(order) - 1 - order[::-1].index(1)
    assert order.count(2) >= 3


@pytest.mark.parametrize("rows", [1100, 1600, 2200, 3200, 8192])
@pytest.mark.parametrize("sets", [1, 2, 64])
def test_results_are_the_same(rows: int, sets: int) -> None:
    """With all rows of the unified buffer in use, and also if the parameter sets of one operation replace others."""
    config = CONFIG.replace(unified_buffer_rows=rows, parameter_sets=sets)
    assert differing_planes(residual_block(), config, np.random.default_rng(rows), batch=3) == 0


def test_parameters_are_loaded_once() -> None:
    """Without room for the parameters of two operations, these do not alternate."""
    order = layers_of_activations(CONFIG.replace(parameter_sets=1), batch=3)
    assert order == sorted(order)
