"""The AXI shell in cocotb, with master and memories of cocotbext-axi."""

from __future__ import annotations

from pathlib import Path

from tb.axi import CONFIG
from tb.run import run


def test_axi(tmp_path: Path) -> None:
    assert (
        run("axi_shell", CONFIG, ["axi.registers", "axi.programs", "axi.errors", "axi.bursts", "axi.demo"], tmp_path)
        > 0
    )
