"""After a scrub of the RTL, a program finds what it would find after power-on."""

from __future__ import annotations

import pytest

from openmxu.arch.config import Config
from tb.directed.checks.scrubs import check_clear, check_registers_after_scrub
from tb.directed.directed_cases import DIRECTED

CONFIGS = pytest.mark.parametrize("config", DIRECTED, ids=lambda config: f"S{config.size}")


@CONFIGS
def test_a_scrub_clears_everything(config: Config) -> None:
    check_clear(config, {})


@CONFIGS
def test_programs_run_as_after_power_on(config: Config) -> None:
    check_registers_after_scrub(config, {})
