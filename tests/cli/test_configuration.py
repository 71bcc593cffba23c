"""The options that select the configuration of a core."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from openmxu.arch.config import Config
from openmxu.cli.configuration import ConfigChoice
from openmxu.cli.errors import InputError

OPTIONS = {
    "profile": ("full", {"profile": "full"}),
    "bus_bytes": (16, {"host_data_bytes": 16, "weight_data_bytes": 16}),
    "host_bus_bytes": (32, {"host_data_bytes": 32}),
    "weight_bus_bytes": (32, {"weight_data_bytes": 32}),
    "lanes": (8, {"activation_lanes": 8}),
    "unified_buffer": (512, {"unified_buffer_rows": 512}),
    "accumulators": (300, {"accumulator_rows": 300}),
    "weight_fifo": (9, {"weight_fifo_tiles": 9}),
    "weight_queue": (3, {"weight_queue_depth": 3}),
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


def test_a_sequential_profile_needs_no_other_option() -> None:
    lite = {"profile": "lite", "weight_queue_depth": 1}
    assert ConfigChoice(profile="lite").config() == Config(**lite)
    assert ConfigChoice(profile="lite", size=4).config() == Config.for_size(4, **lite)
    assert ConfigChoice(profile="lite", preset="medium").config() == Config.preset("medium", **lite)
    with pytest.raises(InputError, match=r"^--weight-queue must be 1 in the profile lite, not 2$"):
        ConfigChoice(profile="lite", weight_queue=2).config()


def test_size_and_preset_exclude_each_other() -> None:
    with pytest.raises(InputError, match=r"^--size and --preset exclude each other: a preset has its own size$"):
        ConfigChoice(size=8, preset="tiny").config()


def test_a_command_takes_the_options_and_reports_illegal_values(openmxu) -> None:
    bench = ("bench", "gemm", 3, 4, 5, "--device", "interpreter", "--json")
    result = openmxu(*bench, "--size", 4, "--lanes", 2, "--bus-bytes", 16, "--unified-buffer", 256).json
    assert (result["mismatches"], result["host_data_bytes"], result["weight_data_bytes"]) == (0, 16, 16)
    result = openmxu(*bench, "--bus-bytes", 16, "--weight-bus-bytes", 32).json
    assert (result["host_data_bytes"], result["weight_data_bytes"]) == (16, 32)
    openmxu(*bench, "--lanes", 3).failed(2, "error: --lanes must divide size (8), not 3")


@pytest.mark.parametrize(
    ("option", "low", "high"),
    [
        ("bus_bytes", 4, 64),
        ("host_bus_bytes", 4, 64),
        ("weight_bus_bytes", 4, 64),
        ("lanes", 1, 8),
        ("unified_buffer", 4, 1 << 24),
        ("accumulators", 4, 1 << 16),
        ("weight_fifo", 2, 256),
        ("weight_queue", 1, 64),
        ("parameter_sets", 1, 1 << 16),
        ("queue_depth", 2, 16),
    ],
)
def test_an_option_names_itself_and_its_range(option: str, low: int, high: int) -> None:
    typed = f"--{option.replace('_', '-')}"
    for value in (low, high):
        ConfigChoice(**{option: value}).config()
    for value in (low - 1, high + 1):
        with pytest.raises(InputError, match=rf"^{typed} must be from {low} to {high}, not {value}$"):
            ConfigChoice(**{option: value}).config()
    help = get_type_hints(ConfigChoice, include_extras=True)[option].__metadata__[0].help
    assert f"from {low} to {'S' if option == 'lanes' else high}" in help


def test_a_bus_has_the_width_of_its_own_option() -> None:
    both = ConfigChoice(bus_bytes=16, host_bus_bytes=4)
    assert both.config() == Config(host_data_bytes=4, weight_data_bytes=16)
    both.check_board(Config(host_data_bytes=4, weight_data_bytes=16), "port")
    with pytest.raises(InputError, match=r"^--host-bus-bytes must be a power of two, not 12$"):
        ConfigChoice(bus_bytes=16, host_bus_bytes=12).config()
    with pytest.raises(InputError, match=r"^--bus-bytes must be a power of two, not 12$"):
        ConfigChoice(bus_bytes=12, host_bus_bytes=4).config()
