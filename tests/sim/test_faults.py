"""Every fault, provoked on the RTL behind its AXI shell, and random words as programs: a short run of
scripts/faults.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from openmxu.arch.faults import CORE_FAULTS
from scripts.faults import Pair, core_faults, random_words, shell_faults


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair(1)
    yield pair
    pair.close()


def test_faults_of_instructions(pair: Pair) -> None:
    rows = list(core_faults(pair, 3, np.random.default_rng(1)))
    assert [row.name for row in rows] == [code.name for code in CORE_FAULTS]
    assert all(row.passed for row in rows), rows


def test_faults_of_memories_and_time_outs(pair: Pair) -> None:
    rows = list(shell_faults(pair, 1, np.random.default_rng(2)))
    assert len(rows) == 13
    assert all(row.passed for row in rows), rows


def test_random_words(pair: Pair) -> None:
    row = random_words(pair, 500, np.random.default_rng(3))
    assert row.passed, row
