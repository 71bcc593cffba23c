"""Of the ways to begin and to end a program, the fastest one is taken."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network, evaluate, gemm_input
from openmxu.compiler.benchmark import conv_network, gemm_network
from openmxu.compiler.plan import search
from openmxu.compiler.plan.fusion_groups import plan_groups
from openmxu.compiler.plan.ramp import Ramp
from openmxu.sim.cycle_model import predict
from openmxu.sim.interpreter import Interpreter

pytestmark = pytest.mark.whole_search

SHAPES = [(100, 100, 100), (64, 16, 128), (16, 128, 16)]


@pytest.mark.parametrize("shape", SHAPES)
def test_never_slower_and_as_exact(shape: tuple[int, int, int]) -> None:
    config = Config.for_size(16)
    network = gemm_network(*shape)
    found = compile_network(network, config)
    first = compile_network(network, config, effort=0)
    before, after = (
        [predict(program.instructions, config, memory_latency=latency).cycles for latency in (4, 100)]
        for program in (first, found)
    )
    assert sum(after) < sum(before)
    assert all(cycles <= most for cycles, most in zip(after, before, strict=True))
    inputs = gemm_input(*shape[:2])
    result = found.run(Interpreter(config), inputs)
    np.testing.assert_array_equal(result["y"], evaluate(network, inputs))


def test_smaller_bands_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """With them, the activation unit begins earlier."""
    network, config = conv_network(16, 16, 32, 32, kernel=1, stride=1, pool=1), Config.for_size(16)
    monkeypatch.setattr(search, "_HALVINGS", 0)  # with less of them, bands are smaller, too
    found = compile_network(network, config)
    others = Ramp.others

    def without_split(ramp: Ramp, *arguments: object) -> list[list[dict[str, int]]]:
        return [changes for changes in others(ramp, *arguments) if changes and "split" not in changes[0]]

    monkeypatch.setattr(Ramp, "others", without_split)
    whole = compile_network(network, config)
    assert predict(found.instructions, config).cycles < 0.95 * predict(whole.instructions, config).cycles


def test_fewer_tiles_side_by_side_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of them leave bands of 100 rows, too few to hide the 128 cycles of a tile's fetch; four leave one band."""
    network, config = gemm_network(200, 256, 512), Config.for_size(32)
    first = Ramp.of(network.operations[0], config)
    (changes,) = next(first.others(network.operations[0], config))
    fewer = dataclasses.replace(first, **changes)
    assert (first.together, fewer.together) == (5, 4)
    cycles = []
    for ramp in (first, fewer):
        monkeypatch.setattr(Ramp, "of", lambda operation, config, ramp=ramp: ramp)
        cycles.append(predict(compile_network(network, config, effort=0).instructions, config).cycles)
    assert cycles[1] < 0.9 * cycles[0]


@pytest.mark.parametrize(("effort", "error"), [(-1, ValueError), (0.5, TypeError), (True, TypeError)])
def test_effort_is_a_number_from_0_on(effort: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^effort must be "):
        compile_network(gemm_network(4, 4, 4), Config(), effort=effort)


def test_output_tiles_share_the_readings_of_a_ring() -> None:
    config = Config.for_size(16)
    (group,) = plan_groups(gemm_network(256, 2048, 64), 256, 16, config)
    assert group.together > 1
    assert group.rings["a"] < 2048 // 16
    assert 2 * group.together * len(group.strips[0].images) <= config.accumulator_rows


@pytest.mark.parametrize("shape", [(64, 64, 64), (31, 31, 31), (70, 40, 100)])
@pytest.mark.parametrize("tail", [0, 16])
@pytest.mark.parametrize("together", [1, 3])
def test_other_beginnings_and_ends_are_exact(
    shape: tuple[int, int, int], tail: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = Ramp(together=together, split=6, apart=True, tail=tail, planes=3)
    monkeypatch.setattr(Ramp, "of", lambda operation, config: ramp)
    network, config, inputs = gemm_network(*shape), Config.for_size(8), gemm_input(*shape[:2])
    result = compile_network(network, config, effort=0).run(Interpreter(config), inputs)
    np.testing.assert_array_equal(result["y"], evaluate(network, inputs))


@pytest.mark.parametrize("planes", [1, 2, 5])
def test_planes_are_read_together(planes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven planes of 20 rows: the first one alone, then ``planes`` at a time."""
    monkeypatch.setattr(Ramp, "of", lambda operation, config: Ramp(planes=planes))
    program = compile_network(gemm_network(20, 50, 8), Config.for_size(8), effort=0)
    reads = [item["rows"] for item in program.instructions if item.word & 0xFF == Opcode.READ_HOST_MEMORY]
    inputs = [rows for rows in reads if rows != PARAMETER_ROWS]
    assert inputs == [20, *[20 * planes] * (6 // planes), *([20 * (6 % planes)] if 6 % planes else [])]


def test_what_comes_before_the_last_output_tile_is_written_meanwhile() -> None:
    """With far memories, the array works in 70 % of the cycles of a product of 64 × 64 × 64 at S = 16."""
    config = Config.for_size(16)
    program = compile_network(gemm_network(64, 64, 64), config)
    assert predict(program.instructions, config, memory_latency=100).cycles <= 1024 / 0.7
