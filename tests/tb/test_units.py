"""Every unit of the RTL in cocotb against its model, with random stalls, in several sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmxu.arch.config import Config
from tb.run import run

TB = Path(__file__).parents[2] / "tb"

# Together they cover both profiles, all ratios of row, tile and beat, of size and lanes, one or several banks, and all
# queue depths.
CONFIGS = {
    "S2": Config(
        profile="full",
        size=2,
        activation_lanes=1,
        unified_buffer_rows=150,
        unified_buffer_banks=1,
        accumulator_rows=12,
        parameter_sets=3,
        weight_fifo_tiles=3,
        weight_queue_depth=3,
        host_data_bytes=8,
        weight_data_bytes=16,
        host_address_width=20,
        weight_address_width=18,
    ),
    "S4": Config(
        profile="full",
        size=4,
        activation_lanes=4,
        unified_buffer_rows=64,
        accumulator_rows=32,
        parameter_sets=1,
        weight_fifo_tiles=2,
        weight_queue_depth=1,
        command_queue_depth=2,
        host_data_bytes=4,
        weight_data_bytes=4,
    ),
    "S8": Config(
        size=8,
        activation_lanes=1,
        unified_buffer_rows=100,
        unified_buffer_banks=4,
        accumulator_rows=32,
        parameter_sets=4,
        command_queue_depth=8,
        host_data_bytes=4,
        weight_data_bytes=8,
        host_address_width=64,
        weight_address_width=64,
    ),
    "S4 wide": Config(
        size=4,
        activation_lanes=1,
        unified_buffer_rows=64,
        accumulator_rows=20,
        parameter_sets=2,
        host_data_bytes=16,
        weight_data_bytes=16,
    ),
}

DATA = {
    "array": ("processing_element", "skew", "systolic_data_setup", "systolic_array", "lite_array"),
    "rows": (
        "stream_fifo",
        "buffered_fifo",
        "address_generator",
        "row_walker",
        "run_walker",
        "row_packer",
        "row_unpacker",
    ),
    "host": ("burst_generator", "host_reader", "host_writer", "unified_buffer"),
    "weights": ("memory_rows", "weight_fetcher", "weight_fifo", "weight_shifter", "transposer", "lite_weights"),
    "matrix": ("matrix_sequencer", "accumulators", "lite_accumulators"),
}

ACTIVATION = {
    "memories": ("parameter_memory", "table_memory", "row_loader", "result_writer"),
    "arithmetic": ("pooler", "operand_multiplier", "scaler", "requantizer", "serial_requantizer"),
    "passes": ("element_fetcher", "activation_sequencer"),
    "unit": ("activation_unit", "compact_activation_unit"),
}

CONTROL = {
    "checks": ("scoreboard", "tile_ledger", "plane_products", "memory_range", "instruction_check"),
    "host": ("management", "scrubber", "watchdog"),
    "dispatch": ("command_queue", "command_queues", "dispatcher"),
}

AXI = {
    "channels": ("burst_splitter", "read_manager", "write_manager"),
    "registers": (
        "program_fetcher",
        "register_slice",
        "event_queue",
        "bus_errors",
        "lite_subordinate",
        "register_file",
    ),
}


SERIAL = {
    "link": ("framer", "deframer", "link"),
    "messages": ("short_message", "message_arbiter", "message_router", "register_port"),
    "memory": ("memory_reader", "memory_writer"),
    "wires": ("uart",),
}


BENCHES = {
    path.stem: ".".join(path.relative_to(TB).with_suffix("").parts)
    for path in (TB / "units").rglob("*.py")
    if path.stem != "__init__"
}
"""The module of each bench, relative to ``tb``."""


def modules(names: tuple[str, ...]) -> list[str]:
    return [BENCHES[name] for name in names]


# "S2" has beats of several rows and tiles, and "S8" rows of several beats. Nearly all parameters of the others occur in
# one of these two; exceptions are combinations of queue depths with numbers of lanes.
SIZES = [pytest.param(name, marks=pytest.mark.slow if name.startswith("S4") else ()) for name in CONFIGS]


# The group varies fastest, so that two processes seldom need the same build at the same time.
@pytest.mark.parametrize("group", DATA)
@pytest.mark.parametrize("config", SIZES)
def test_data_path(config: str, group: str, tmp_path: Path) -> None:
    assert run("data", CONFIGS[config], modules(DATA[group]), tmp_path) >= len(DATA[group])


@pytest.mark.parametrize("group", ACTIVATION)
@pytest.mark.parametrize("config", SIZES)
def test_activation(config: str, group: str, tmp_path: Path) -> None:
    assert run("activation", CONFIGS[config], modules(ACTIVATION[group]), tmp_path) >= len(ACTIVATION[group])


@pytest.mark.parametrize("group", CONTROL)
@pytest.mark.parametrize("config", SIZES[:-1])
def test_control(config: str, group: str, tmp_path: Path) -> None:
    assert run("control", CONFIGS[config], modules(CONTROL[group]), tmp_path) >= len(CONTROL[group])


@pytest.mark.parametrize("group", AXI)
def test_axi(group: str, tmp_path: Path) -> None:
    assert run("axi", CONFIGS["S8"], modules(AXI[group]), tmp_path) >= len(AXI[group])


@pytest.mark.parametrize("group", SERIAL)
def test_serial(group: str, tmp_path: Path) -> None:
    assert run("serial", CONFIGS["S8"], modules(SERIAL[group]), tmp_path) >= len(SERIAL[group])


def test_every_bench_is_run() -> None:
    groups = (*DATA.values(), *ACTIVATION.values(), *CONTROL.values(), *AXI.values(), *SERIAL.values())
    assert set(BENCHES) == {name for names in groups for name in names}
