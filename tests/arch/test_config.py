"""Config: validation with messages that quote the value, presets, derived sizes."""

from __future__ import annotations

import dataclasses

import pytest

from openmxu.arch.config import PRESETS, Config, ceil_log2

NUMBERS = [field.name for field in dataclasses.fields(Config) if field.name != "profile"]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [8.0, "8", None, True])
def test_wrong_type_is_named(name: str, value: object) -> None:
    with pytest.raises(TypeError) as caught:
        Config(**{name: value})
    assert str(caught.value) == f"{name} must be an int, not {value!r}"


def test_profile_is_a_known_name() -> None:
    assert Config().features.name == "standard"
    assert Config(profile="lite", weight_queue_depth=1).features.name == "lite"
    with pytest.raises(ValueError, match=r"^weight_queue_depth must be 1 in the profile lite, not 4$"):
        Config(profile="lite")
    with pytest.raises(TypeError, match="profile must be a str, not 1"):
        Config(profile=1)
    with pytest.raises(ValueError, match="unknown profile 'sparse'; known: standard, lite, full"):
        Config(profile="sparse")


@pytest.mark.parametrize("size", [2, 8, 16])
def test_a_sequential_profile_has_one_read_of_weights(size: int) -> None:
    config = Config.for_size(size, profile="lite")
    assert config == Config.for_size(size, profile="standard").replace(profile="lite", weight_queue_depth=1)
    assert Config.preset("tiny", profile="lite").weight_queue_depth == 1
    with pytest.raises(ValueError, match=r"^weight_queue_depth must be 1 in the profile lite, not 2$"):
        Config.for_size(size, profile="lite", weight_queue_depth=2)
    with pytest.raises(TypeError, match="profile must be a str, not 1"):
        Config.for_size(size, profile=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 1}, "size must be from 2 to 256, not 1"),
        ({"size": 512}, "size must be from 2 to 256, not 512"),
        ({"size": 12}, "size must be a power of two, not 12"),
        ({"unified_buffer_banks": 0}, "unified_buffer_banks must be from 1 to 16, not 0"),
        ({"unified_buffer_banks": 3}, "unified_buffer_banks must be a power of two, not 3"),
        ({"unified_buffer_rows": 3}, "unified_buffer_rows must be from 4 to 16777216, not 3"),
        ({"unified_buffer_rows": (1 << 24) + 2}, "unified_buffer_rows must be from 4 to 16777216, not 16777218"),
        (
            {"unified_buffer_rows": 1001},
            "unified_buffer_rows must be a multiple of unified_buffer_banks (2), not 1001",
        ),
        ({"accumulator_rows": 2}, "accumulator_rows must be from 4 to 65536, not 2"),
        ({"accumulator_rows": 65538}, "accumulator_rows must be from 4 to 65536, not 65538"),
        ({"accumulator_rows": 101}, "accumulator_rows must be even, not 101"),
        ({"weight_fifo_tiles": 1}, "weight_fifo_tiles must be from 2 to 256, not 1"),
        ({"activation_lanes": 16}, "activation_lanes must be from 1 to 8, not 16"),
        ({"activation_lanes": 3}, "activation_lanes must divide size (8), not 3"),
        ({"parameter_sets": 0}, "parameter_sets must be from 1 to 65536, not 0"),
        ({"command_queue_depth": 1}, "command_queue_depth must be from 2 to 16, not 1"),
        ({"command_queue_depth": 6}, "command_queue_depth must be a power of two, not 6"),
        ({"weight_queue_depth": 0}, "weight_queue_depth must be from 1 to 64, not 0"),
        ({"weight_queue_depth": 65}, "weight_queue_depth must be from 1 to 64, not 65"),
        ({"host_data_bytes": 2}, "host_data_bytes must be from 4 to 64, not 2"),
        ({"host_data_bytes": 12}, "host_data_bytes must be a power of two, not 12"),
        ({"weight_data_bytes": 128}, "weight_data_bytes must be from 4 to 64, not 128"),
        ({"weight_data_bytes": 24}, "weight_data_bytes must be a power of two, not 24"),
        ({"host_address_width": 15}, "host_address_width must be from 16 to 64, not 15"),
        ({"weight_address_width": 65}, "weight_address_width must be from 16 to 64, not 65"),
    ],
)
def test_wrong_value_is_quoted(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Config(**changes)
    assert str(caught.value) == message


def test_is_immutable_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().size = 16
    with pytest.raises(TypeError, match="positional"):
        Config(8)


def test_replace_validates_again() -> None:
    assert Config().replace(size=16).size == 16
    with pytest.raises(ValueError, match="size must be a power of two, not 20"):
        Config().replace(size=20)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name: str) -> None:
    config = Config.preset(name)
    assert Config(**config.as_dict()) == config
    assert {key: value for key, value in config.as_dict().items() if key in PRESETS[name]} == PRESETS[name]


def test_preset_with_changes() -> None:
    assert Config.preset("tiny", parameter_sets=3) == Config.preset("tiny").replace(parameter_sets=3)


def test_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(ValueError) as caught:
        Config.preset("tpu_v2")
    assert (
        str(caught.value) == "unknown preset 'tpu_v2'; known: tiny, icebreaker, tang_nano_9k, default, medium, tpu_v1"
    )


def test_tpu_v1_has_the_sizes_of_the_paper() -> None:
    config = Config.preset("tpu_v1")
    assert config.size * config.size == 65_536  # "256x256 MACs"
    assert config.unified_buffer_rows * config.size == 24 * 2**20  # "24 MiB Unified Buffer"
    assert config.accumulator_rows * config.size * 4 == 4 * 2**20  # "4 MiB of 32-bit Accumulators"
    assert config.weight_fifo_tiles == 4  # "The weight FIFO is four tiles deep"
    assert config.tile_bytes == 64 * 2**10  # "one 64 KiB tile of weights"
    assert config.weight_data_bytes * 700e6 >= 34e9  # 34 GB/s of weight memory at 700 MHz
    assert config.column_groups == 1


@pytest.mark.parametrize(
    ("size", "lanes", "tiles", "sets", "profile"),
    [
        (2, 1, 16, 64, "standard"),
        (4, 1, 16, 64, "standard"),
        (8, 2, 16, 64, "standard"),
        (16, 8, 16, 128, "full"),
        (32, 16, 16, 128, "full"),
        (64, 32, 8, 128, "full"),
        (256, 128, 4, 128, "full"),
    ],
)
def test_for_size(size: int, lanes: int, tiles: int, sets: int, profile: str) -> None:
    config = Config.for_size(size)
    assert (config.size, config.activation_lanes, config.column_groups) == (size, lanes, size // lanes)
    assert (config.weight_fifo_tiles, config.parameter_sets, config.profile) == (tiles, sets, profile)
    assert (
        Config.for_size(size, weight_fifo_tiles=5, parameter_sets=9).replace(
            weight_fifo_tiles=tiles, parameter_sets=sets
        )
        == config
    )


def test_for_size_reports_a_wrong_size() -> None:
    with pytest.raises(ValueError, match="size must be a power of two, not 12"):
        Config.for_size(12)
    with pytest.raises(TypeError, match="size must be an int, not '8'"):
        Config.for_size("8")


def test_fingerprint_depends_on_every_parameter() -> None:
    changed = {
        "size": 16,
        "unified_buffer_rows": 4096,
        "unified_buffer_banks": 4,
        "accumulator_rows": 512,
        "weight_fifo_tiles": 2,
        "activation_lanes": 4,
        "parameter_sets": 32,
        "command_queue_depth": 8,
        "weight_queue_depth": 8,
        "host_data_bytes": 16,
        "weight_data_bytes": 16,
        "host_address_width": 40,
        "weight_address_width": 40,
        "profile": "lite",
    }
    assert list(changed) == [*NUMBERS, "profile"]
    config = Config(weight_queue_depth=1)  # valid in all profiles
    fingerprints = {config.replace(**{name: value}).fingerprint for name, value in changed.items()}
    assert len(fingerprints | {config.fingerprint}) == len(changed) + 1
    assert Config().fingerprint == Config().replace(size=8).fingerprint


def test_address_widths_reach_every_row_and_no_more() -> None:
    config = Config(unified_buffer_rows=1026, accumulator_rows=1024, parameter_sets=1)
    assert config.unified_buffer_address_width == 11
    assert config.accumulator_address_width == 10
    assert config.parameter_set_width == 1


@pytest.mark.parametrize(
    ("size", "host_bytes", "weight_bytes", "host_alignment", "weight_alignment"),
    [(2, 8, 8, 2, 4), (4, 8, 16, 4, 16), (8, 8, 8, 8, 8), (16, 8, 64, 8, 64), (16, 32, 8, 16, 8)],
)
def test_alignment_is_the_smaller_of_unit_and_beat(
    size: int, host_bytes: int, weight_bytes: int, host_alignment: int, weight_alignment: int
) -> None:
    config = Config.for_size(size, host_data_bytes=host_bytes, weight_data_bytes=weight_bytes)
    assert (config.host_alignment, config.weight_alignment) == (host_alignment, weight_alignment)


@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128, 256])
def test_partial_sum_width_is_the_smallest_that_holds_every_sum(size: int) -> None:
    width = Config.for_size(size).partial_sum_width
    largest = size * 255 * 255
    assert largest <= 2 ** (width - 1) - 1
    assert largest > 2 ** (width - 2) - 1
    assert width <= 32


@pytest.mark.parametrize(("value", "bits"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 24, 24)])
def test_ceil_log2(value: int, bits: int) -> None:
    assert ceil_log2(value) == bits


def test_ceil_log2_of_nothing() -> None:
    with pytest.raises(ValueError, match="a count must be at least 1, not 0"):
        ceil_log2(0)
