"""A program may leave a part of a memory unused, so that a core with more of it is not slower."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import compile_network, gemm_network
from openmxu.compiler.plan import search
from openmxu.sim.cycle_model import predict
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import residual_block

pytestmark = pytest.mark.whole_search

LARGE = Config.for_size(8, unified_buffer_rows=32768)


def test_less_of_a_memory_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    config = LARGE
    found = compile_network(residual_block(), config, 8)
    assert found.config == config
    monkeypatch.setattr(search, "_MEMORIES", ())
    whole = compile_network(residual_block(), config, 8)
    cycles, most = (predict(program.instructions, config).cycles for program in (found, whole))
    assert cycles < 0.95 * most


def test_exact_with_less_of_a_memory() -> None:
    assert differing_planes(residual_block(), LARGE, np.random.default_rng(0), batch=8) == 0


@pytest.mark.parametrize(("size", "enough"), [(8, 1024), (64, 8192)])
def test_more_sums_than_hide_the_fetch_of_weights_change_nothing(size: int, enough: int) -> None:
    network = gemm_network(600, 3 * size, 2 * size)
    programs = [
        compile_network(network, Config.for_size(size, accumulator_rows=rows)).instructions
        for rows in (enough, 2 * enough)
    ]
    assert programs[0] == programs[1]


def test_no_search_without_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(search._Search, "improve")
    compile_network(residual_block(), Config.for_size(8), 8, effort=0)
