"""A program may leave a part of a memory unused, so that a core with more of it is not slower."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.compiler import compile_network, gemm_network
from openmxu.compiler.plan import search
from openmxu.compiler.plan.ramp import Ramp
from openmxu.compiler.target import Target
from openmxu.sim.cycle_model import predict
from tests.compiler.models.plane_networks import differing_outputs
from tests.compiler.models.random_cells import cell_network, random_cell
from tests.compiler.models.small_networks import residual_block

pytestmark = pytest.mark.whole_search

FEW_SETS = Config.for_size(4, parameter_sets=32)
GRU = cell_network(random_cell(np.random.default_rng(0), "gru", inputs=16, units=64), inputs=16, length=6)
LARGE = Config.for_size(8, unified_buffer_rows=32768)


@pytest.fixture
def limits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ways to begin and to end a program are not tried."""
    monkeypatch.setattr(search, "_RAMPS", 0)


@pytest.mark.usefixtures("limits_alone")
def test_less_of_a_memory_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compile_network(residual_block(), LARGE, 8)
    assert found.config == LARGE
    monkeypatch.setattr(search, "_HALVINGS", 0)
    whole = compile_network(residual_block(), LARGE, 8)
    cycles, most = (predict(program.instructions, LARGE).cycles for program in (found, whole))
    assert cycles < 0.95 * most
    assert differing_outputs(residual_block(), found, np.random.default_rng(0)) == 0


@pytest.mark.usefixtures("limits_alone")
@pytest.mark.parametrize(("size", "enough", "rows"), [(8, 1024, 600), (64, 8192, 6000)])
def test_more_sums_than_hide_the_fetch_of_weights_change_nothing(size: int, enough: int, rows: int) -> None:
    network = gemm_network(rows, 3 * size, 2 * size)
    programs = [
        compile_network(network, Config.for_size(size, accumulator_rows=sums)).instructions
        for sums in (enough, 2 * enough)
    ]
    assert programs[0] == programs[1]


def test_no_search_without_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(search._Search, "improve")
    compile_network(residual_block(), Config.for_size(8), 8, effort=0)


@pytest.fixture
def steps_alone(limits_alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole sequences are too long to try any."""
    monkeypatch.setattr(search, "_LIMITS", 0)


@pytest.mark.usefixtures("steps_alone")
def test_first_steps_of_a_cell_stand_for_all() -> None:
    first, found = (compile_network(GRU, FEW_SETS, 4, effort=effort) for effort in (0, 1))
    assert predict(found.instructions, FEW_SETS).cycles < 0.9 * predict(first.instructions, FEW_SETS).cycles
    assert differing_outputs(GRU, found, np.random.default_rng(0)) == 0


@dataclass(frozen=True)
class _Program:
    """A program of so many cycles."""

    cycles: int
    instructions: tuple[int, ...]


@pytest.fixture
def stated_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs take the cycles that they state, with any latency."""
    monkeypatch.setattr(search, "_cycles", lambda program, config: iter([program.cycles] * len(search._LATENCIES)))


@pytest.mark.usefixtures("stated_cycles")
@pytest.mark.parametrize(
    ("cycles", "saved", "more", "is_better"),
    [
        (1_000, 10, 50, False),
        (1_000, 15, 50, True),
        (1_000, 15, 100, False),
        # The host port reads instructions in few of the cycles.
        (100_000, 1, 50, True),
        (100_000, 1, 300, False),
        # No program becomes slower to have fewer instructions.
        (1_000, 0, -50, False),
        (1_000, 1, -50, True),
    ],
)
def test_more_instructions_save_the_cycles_of_waiting_for_them(
    cycles: int, saved: int, more: int, is_better: bool
) -> None:
    """Of 100 instructions, each of two beats; a quarter of the beats in cycles in which others are read is waited
    for."""
    found = search._Search(_Program(cycles, (0,) * 100), Target.of(Config.for_size(8)))
    found.allow(1000)
    assert found.improve(_Program(cycles - saved, (1,) * (100 + more))) == is_better


@pytest.mark.parametrize(("near", "far", "is_better"), [(10_005, 9_950, True), (10_020, 9_950, False)])
def test_a_program_that_gains_with_far_memories_may_lose_a_thousandth_with_near_ones(
    monkeypatch: pytest.MonkeyPatch, near: int, far: int, is_better: bool
) -> None:
    cycles = {1: (near, far)}
    monkeypatch.setattr(search, "_cycles", lambda program, config: iter(cycles.get(program.cycles, (10_000, 10_000))))
    found = search._Search(_Program(0, (0,)), Target.of(Config.for_size(8)))
    found.allow(1000)
    assert found.improve(_Program(1, (1,))) == is_better


@pytest.mark.usefixtures("stated_cycles")
def test_a_long_program_takes_the_place_of_several() -> None:
    found = search._Search(_Program(1_000, (0,) * 100), Target.of(Config.for_size(8)))
    found.allow(1000)
    assert found.attempts == 10
    found.improve(_Program(2_000, (1,) * 450))
    assert found.attempts == 5
    found.improve(_Program(2_000, (1,) * 700))
    assert found.attempts == 0


@pytest.mark.usefixtures("stated_cycles")
@pytest.mark.parametrize(("length", "cycles"), [(100, 4000), (1000, 6000)])
def test_a_short_program_is_tried_again_with_its_parameters_first(length: int, cycles: int) -> None:
    """These pay off with a short tail alone, which by itself is slower and is tried before them."""

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        taken = {(False, 0): 6000, (True, 8): 4000}.get((ramp.parameters_first, ramp.tail), 8000)
        return _Program(taken, (taken,) * length)

    found = search.fastest(compiled, gemm_network(31, 31, 31).operations[0], Target.of(Config.for_size(8)), effort=1)
    assert found.cycles == cycles


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
@pytest.mark.parametrize(("later_step", "sets"), [(10, 32), (16, 64)])
def test_first_steps_decide_nothing_where_later_ones_are_slower(later_step: int, sets: int) -> None:
    """With half of the parameter sets two steps take 96 cycles, not 100, and each step behind them 10 or 16, not
    13."""

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        has_all, more = limits.parameter_sets == 64, (steps or 6) - 2
        smaller = {32: 0, 64: 4}.get(limits.parameter_sets, 8) + 10 * (limits.replace(parameter_sets=64) != config)
        return _Program(96 + smaller + more * (13 if has_all else later_step), (limits.parameter_sets,))

    config = Target.of(Config.for_size(8, parameter_sets=64))
    cell = GRU.operations[0]
    assert search.fastest(compiled, cell, config, effort=1, steps=6).instructions == (sets,)


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
def test_less_of_a_memory_that_pays_off_with_less_of_another() -> None:
    """Half of the parameter sets are worth it only with half of the accumulators, which are tried later; what
    is slower is not tried again."""
    tried: Counter[Config] = Counter()

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        tried[limits] += steps == search._FIRST_STEPS
        memories = limits.parameter_sets, limits.accumulator_rows
        cycles = {(64, 512): 50, (32, 512): 40}.get(memories, 60 if memories == (64, 1024) else 90)
        return _Program(cycles * (steps or 6), memories)

    config = Target.of(Config.for_size(8, parameter_sets=64, accumulator_rows=1024))
    assert search.fastest(compiled, GRU.operations[0], config, effort=1, steps=6).instructions == (32, 512)
    others = {less: count for less, count in tried.items() if less.unified_buffer_rows == config.unified_buffer_rows}
    assert max(others.values()) == 1


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
def test_less_of_two_memories_that_pays_off_with_both_alone() -> None:
    """A quarter of the parameter sets with half of the accumulators: less of either is slower, and so is half of
    both."""

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        memories = limits.parameter_sets, limits.accumulator_rows
        return _Program({(16, 512): 40, (64, 1024): 60}.get(memories, 90) * (steps or 6), memories)

    config = Target.of(Config.for_size(8, parameter_sets=64, accumulator_rows=1024))
    assert search.fastest(compiled, GRU.operations[0], config, effort=1, steps=6).instructions == (16, 512)


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
@pytest.mark.parametrize(("length", "attempts", "sets"), [(10, 60, 16), (10, 20, 64)])
def test_a_quarter_of_a_resource_where_half_is_slower(
    monkeypatch: pytest.MonkeyPatch, length: int, attempts: int, sets: int
) -> None:
    """It is tried only where many programs may be."""

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        rest = 0 if limits.replace(parameter_sets=64) == config else 50
        cycles = {64: 60, 32: 70, 16: 40}.get(limits.parameter_sets, 90) + rest
        return _Program(cycles * (steps or 6), (limits.parameter_sets,) * length)

    monkeypatch.setattr(search, "_STEPS", attempts * length)
    config = Target.of(Config.for_size(8, parameter_sets=64))
    found = search.fastest(compiled, GRU.operations[0], config, effort=1, steps=6)
    assert set(found.instructions) == {sets}


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
def test_all_steps_choose_among_plans_with_faster_first_steps() -> None:
    """The first two are fastest with a quarter of the parameter sets, all with half of them."""

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        first, further = {64: (100, 30), 32: (90, 20), 16: (60, 29)}.get(limits.parameter_sets, (500, 90))
        rest = 0 if limits.replace(parameter_sets=64) == config else 500
        return _Program(first + rest + further * ((steps or 20) - 2), (limits.parameter_sets,))

    config = Target.of(Config.for_size(8, parameter_sets=64))
    found = search.fastest(compiled, GRU.operations[0], config, effort=1, steps=20)
    assert found.instructions == (32,)


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
@pytest.mark.parametrize(("length", "sets"), [(100, 64), (2000, 32)])
def test_pairs_of_steps_stand_for_all_where_programs_are_short(length: int, sets: int) -> None:
    """With half of the parameter sets the third step is fast, like every other one, but both together are slow. No
    first steps are compiled twice."""
    made: Counter[tuple[Config, int]] = Counter()

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        if steps:
            made[limits, steps] += 1
        pairs, rest = divmod(steps or 20, 2)
        cycles = {64: 6000 * pairs + 3000 * rest, 32: 7000 * pairs + 1000 * rest}.get(limits.parameter_sets, 10**6)
        others = 0 if limits.replace(parameter_sets=64) == config else 10**6
        return _Program(cycles + others, (limits.parameter_sets,) * length)

    config = Target.of(Config.for_size(8, parameter_sets=64))
    found = search.fastest(compiled, GRU.operations[0], config, effort=1, steps=20)
    assert set(found.instructions) == {sets}
    assert max(made.values()) == 1


@pytest.mark.usefixtures("steps_alone")
def test_a_wide_host_port_takes_the_plan_for_a_narrower_one_where_that_is_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = cell_network(random_cell(np.random.default_rng(0), "gru", inputs=32, units=64), inputs=32, length=4)
    wide, narrow = (Config.for_size(16, host_data_bytes=width) for width in (8, 4))
    found, least = (compile_network(network, config, 8) for config in (wide, narrow))
    monkeypatch.setattr(search, "_STEP_RESOURCES", search._MEMORIES)
    without = compile_network(network, wide, 8)
    for latency in search._LATENCIES:
        own, most, other = (
            predict(program.instructions, wide, memory_latency=latency).cycles for program in (found, without, least)
        )
        assert own < most
        assert own <= other
    assert differing_outputs(network, found, np.random.default_rng(0)) == 0


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
@pytest.mark.parametrize("memory", search._MEMORIES)
@pytest.mark.parametrize("attempts", [3, 4, 5, 7])
def test_few_attempts_are_shared_by_the_memories(monkeypatch: pytest.MonkeyPatch, memory: str, attempts: int) -> None:
    """Half of one memory is worth it, whichever it is."""
    config = Config.for_size(8)
    half = getattr(config, memory) // 2

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        rows = tuple(getattr(limits, name) for name in search._MEMORIES)
        return _Program(40 if getattr(limits, memory) == half else 60, rows)

    monkeypatch.setattr(search, "_LIMITS", attempts * len(search._MEMORIES))
    found = search.fastest(compiled, GRU.operations[0], Target.of(config), effort=1).instructions
    assert found == tuple(getattr(config.replace(**{memory: half}), name) for name in search._MEMORIES)


@pytest.mark.usefixtures("steps_alone", "stated_cycles")
def test_long_programs_for_little_of_a_memory_leave_the_others_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the accumulators are worth it; they are tried behind programs for ever less of the unified buffer."""
    config = Config.for_size(8)

    def compiled(limits: Config, ramp: Ramp, steps: int | None = None) -> _Program:
        rows = tuple(getattr(limits, name) for name in search._MEMORIES)
        is_half = limits.accumulator_rows == config.accumulator_rows // 2
        longer = 1 if limits.unified_buffer_rows == config.unified_buffer_rows else 20
        return _Program(40 if is_half and longer == 1 else 60, rows * longer)

    monkeypatch.setattr(search, "_LIMITS", 6 * len(search._MEMORIES))
    found = search.fastest(compiled, GRU.operations[0], Target.of(config), effort=1).instructions
    assert found[1] == config.accumulator_rows // 2
