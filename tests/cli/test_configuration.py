"""The options that select the configuration of a core."""

from __future__ import annotations

import pytest

from openmxu.arch.config import Config
from openmxu.cli.configuration import ConfigChoice
from openmxu.cli.errors import InputError

OPTIONS = {
    "profile": ("full", {"profile": "full"}),
    "bus_bytes": (16, {"host_data_bytes": 16, "weight_data_bytes": 16}),
    "lanes": (8, {"activation_lanes": 8}),
    "unified_buffer": (512, {"unified_buffer_rows": 512}),
    "accumulators": (300, {"accumulator_rows": 300}),
    "weight_fifo": (9, {"weight_fifo_tiles": 9}),
    "parameter_sets": (100, {"parameter_sets": 100}),
    "queue_depth": (8, {"command_queue_depth": 8}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_changes_its_parameters_alone(name: str) -> None:
    value, changes = OPTIONS[name]
    choice = ConfigChoice(**{name: value})
    assert choice.is_given
    assert choice.config() == Config(**changes)
    assert ConfigChoice(size=16, **{name: value}).config() == Config.for_size(16, **changes)
    assert ConfigChoice(preset="medium", **{name: value}).config() == Config.preset("medium", **changes)


def test_nothing_chosen_is_the_default() -> None:
    assert not ConfigChoice().is_given
    assert ConfigChoice().config() == Config()


def test_size_and_preset_exclude_each_other() -> None:
    with pytest.raises(InputError, match=r"^--size and --preset exclude each other: a preset has its own size$"):
        ConfigChoice(size=8, preset="tiny").config()


def test_a_command_takes_the_options_and_reports_illegal_values(openmxu) -> None:
    bench = ("bench", "gemm", 3, 4, 5, "--device", "interpreter", "--json")
    result = openmxu(*bench, "--size", 4, "--lanes", 2, "--bus-bytes", 16, "--unified-buffer", 256).json
    assert (result["mismatches"], result["host_data_bytes"], result["weight_data_bytes"]) == (0, 16, 16)
    openmxu(*bench, "--lanes", 3).failed(2, "activation_lanes must divide size (8), not 3")
    openmxu(*bench, "--bus-bytes", 12).failed(2, "host_data_bytes must be a power of two, not 12")
    openmxu(*bench, "--queue-depth", 0).failed(2, "--queue-depth")
