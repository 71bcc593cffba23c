"""The order of phases and blocks: nothing comes before what it needs, and little is left at the end."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.compiler.recurrent.block_order import block_order
from tests.compiler.models.random_cells import KINDS, random_cell

FOUR = [range(2), range(2, 4), range(4, 6), range(6, 8)]


def test_later_phases_of_a_block_follow_the_first_phase_of_the_next() -> None:
    lstm = random_cell(np.random.default_rng(0), "lstm", 8, 32)
    order = block_order(lstm, [FOUR, FOUR, FOUR])
    assert [f"{phase}{block}" for phase, block in order] == [
        "00", "01", "10", "02", "20", "11", "03", "21", "12", "13", "22", "23",
    ]  # fmt: skip


@pytest.mark.parametrize("lengths", [(8, 8, 8), (2, 4, 8), (8, 4, 2), (3, 3, 5), (1, 8, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_everything_needed_comes_before(kind: str, lengths: tuple[int, ...]) -> None:
    cell = random_cell(np.random.default_rng(0), kind, 8, 32)
    blocks = [
        [range(start, min(8, start + length)) for start in range(0, 8, length)]
        for length in lengths[: len(cell.phases)]
    ]
    order = block_order(cell, blocks)
    assert sorted(order) == [(phase, block) for phase, some in enumerate(blocks) for block in range(len(some))]
    made: dict[str, set[int]] = {}
    values = {step.target for phase in cell.phases for step in phase.steps} - set(cell.carried)
    for phase, block in order:
        for item in cell.phases[phase].sums:
            for value in values & item.weights.keys():
                assert made.get(value, set()) == set(range(8))
            for value in values & item.factors.keys():
                assert made.get(value, set()) >= set(blocks[phase][block])
        for step in cell.phases[phase].steps:
            for value in values & {step.source, step.operand}:
                assert made.get(value, set()) >= set(blocks[phase][block])
            made.setdefault(step.target, set()).update(blocks[phase][block])
