"""A program may leave a part of a memory unused, so that a core with more of it is not slower."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import compile_network
from openmxu.compiler.plan import search
from openmxu.sim.cycle_model import predict
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import residual_block

MORE = {"unified_buffer_rows": 32768, "accumulator_rows": 4096}


@pytest.mark.parametrize("memory", MORE)
def test_less_of_a_memory_where_that_is_faster(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config.for_size(8, **{memory: MORE[memory]})
    monkeypatch.setattr(search, "_LEAST", 0)
    found = compile_network(residual_block(), config, 8)
    assert found.config == config
    monkeypatch.setattr(search, "_MEMORIES", ())
    whole = compile_network(residual_block(), config, 8)
    cycles, most = (predict(program.instructions, config).cycles for program in (found, whole))
    assert cycles < 0.95 * most


@pytest.mark.parametrize("memory", MORE)
def test_exact_with_less_of_a_memory(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_LEAST", 0)
    config = Config.for_size(8, **{memory: MORE[memory]})
    assert differing_planes(residual_block(), config, np.random.default_rng(0), batch=8) == 0


def test_short_programs_are_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(search, "_with_less")
    compile_network(residual_block(), Config.for_size(8), 1)


def test_no_search_without_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(search._Search, "improve")
    compile_network(residual_block(), Config.for_size(8), 8, effort=0)
