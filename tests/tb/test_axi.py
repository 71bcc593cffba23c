"""The AXI shell in cocotb, between cocotbext-axi's master and memories."""

from __future__ import annotations

from pathlib import Path

from openmxu.arch.config import Config
from tb.run import run

CONFIG = Config(
    size=4,
    unified_buffer_rows=512,
    unified_buffer_banks=1,
    accumulator_rows=128,
    activation_lanes=2,
    parameter_sets=16,
    host_data_bytes=64,
    weight_data_bytes=4,
    host_address_width=40,
)
"""The widest bus and the narrowest, an address of more than a word."""


def test_axi(tmp_path: Path) -> None:
    assert run("axi_shell", CONFIG, ["axi.registers", "axi.programs", "axi.errors", "axi.demo"], tmp_path) > 0
