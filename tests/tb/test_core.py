"""The whole core in cocotb, driven through bus models, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmxu.arch.config import Config
from tb.run import run

CONFIGS = {
    "S2": Config(
        size=2,
        unified_buffer_rows=256,
        unified_buffer_banks=1,
        accumulator_rows=36,
        activation_lanes=1,
        parameter_sets=3,
        weight_fifo_tiles=3,
        weight_queue_depth=3,
        host_data_bytes=16,
        weight_data_bytes=4,
        host_address_width=20,
    ),
    "S4": Config(
        size=4,
        unified_buffer_rows=256,
        unified_buffer_banks=4,
        accumulator_rows=64,
        activation_lanes=4,
        parameter_sets=4,
        weight_fifo_tiles=2,
        weight_queue_depth=4,
        command_queue_depth=2,
        host_data_bytes=4,
        weight_data_bytes=8,
    ),
    "S8": Config(
        size=8,
        unified_buffer_rows=512,
        accumulator_rows=64,
        activation_lanes=2,
        parameter_sets=8,
        command_queue_depth=8,
        host_data_bytes=8,
        weight_data_bytes=16,
    ),
}


@pytest.mark.parametrize(
    "config", [pytest.param(name, marks=pytest.mark.slow if name != "S4" else ()) for name in CONFIGS]
)
def test_core(config: str, tmp_path: Path) -> None:
    assert run("core", CONFIGS[config], ["core.programs"], tmp_path) > 0
