"""Every unit of the RTL in cocotb, against its model, with random stalls."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmxu.arch.config import Config
from tb.run import run

SMALL = {"unified_buffer_rows": 64, "accumulator_rows": 32, "parameter_sets": 4}

CONFIGS = {
    "S2": Config(size=2, activation_lanes=2, **SMALL),
    "S4": Config(size=4, activation_lanes=2, **SMALL),
}

GROUPS = {
    "array": ("data", ("processing_element", "skew", "systolic_data_setup", "systolic_array")),
    "rows": ("data", ("stream_fifo", "row_packer", "row_unpacker")),
    "host": ("data", ("burst_generator", "host_reader", "host_writer", "unified_buffer")),
    "weights": ("data", ("weight_fetcher", "weight_fifo", "weight_shifter")),
    "activation": ("data", ("parameter_memory", "parameter_loader", "requantizer", "activation_unit")),
    "matrix": ("data", ("matrix_sequencer", "accumulators")),
    "control": ("control", ("scoreboard", "tile_ledger", "management", "instruction_check")),
}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("group", GROUPS)
def test_units(group: str, config: str, tmp_path: Path) -> None:
    kind, modules = GROUPS[group]
    assert run(kind, CONFIGS[config], [f"units.{module}" for module in modules], tmp_path) >= len(modules)
