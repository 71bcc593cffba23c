"""Every fault in the RTL behind its AXI shell, and random words as programs: a short run of scripts/faults.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from openmxu.arch.faults import CORE_FAULTS
from openmxu.arch.isa import format_named
from openmxu.device import DeviceFault, DeviceHang
from openmxu.driver import MemoryKind
from openmxu.sim.axi import Reply
from scripts.faults import Pair, core_faults, random_words, resets, shell_faults
from tb.lockstep.case import HALT


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


def test_scrub_after_a_reset_that_did_not_end(pair: Pair) -> None:
    """The core stays in reset until its memory answers, and ignores commands until then."""
    config, memory = pair.rtl.config, np.full(1 << 12, 0x5A, np.uint8)
    read, write = format_named("Read_Host_Memory"), format_named("Write_Host_Memory")
    pair.rtl.execute([read(rows=config.unified_buffer_rows // 4), HALT], memory, memory)
    host = pair.transport.region(MemoryKind.HOST)
    pair.transport.answer(MemoryKind.HOST, host.base, host.size, Reply.NEVER)
    with pytest.raises(DeviceFault, match="TIME_OUT"):
        pair.rtl.execute([read(rows=1), HALT], memory, memory)
    with pytest.raises(DeviceHang, match="the reset does not end"):
        pair.rtl.scrub()
    pair.transport.answer(MemoryKind.HOST, host.base, 0, Reply.OKAY)
    pair.rtl.scrub()
    pair.rtl.execute([write(rows=config.unified_buffer_rows // 4), HALT], memory, memory)
    assert not memory.any()


def test_resets(pair: Pair) -> None:
    row = resets(pair, 40, np.random.default_rng(4))
    assert row.passed, row


def test_random_words(pair: Pair) -> None:
    row = random_words(pair, 500, np.random.default_rng(3))
    assert row.passed, row
