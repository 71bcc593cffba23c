"""A failure in cocotb must fail the pytest test around it, and so must a bench without tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmxu.arch.config import Config
from tb.run import TestbenchError, run

CONFIG = Config(size=2, activation_lanes=1, unified_buffer_rows=64, accumulator_rows=12, parameter_sets=3)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("selftests.failing", r"1 of 2 cocotb tests failed: tb\.selftests\.failing\.fails"),
        ("selftests.violating", r"the payload changed"),
        ("selftests.withdrawing", r"valid was withdrawn"),
        ("selftests.empty", "no cocotb test ran|ended early"),
        ("selftests.missing", "ended early|failed"),
    ],
)
def test_failures_are_reported(module: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TestbenchError, match=message):
        run("selftests", CONFIG, [module], tmp_path)
