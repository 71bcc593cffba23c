"""The sizes of a core: :class:`Config`, its validation and its presets."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openmxu.arch.profile import PROFILES, Profile, profile_named

__all__ = ["PRESETS", "Config", "ceil_log2", "sum_width"]


def ceil_log2(value: int) -> int:
    """Bits of an index into ``value`` entries; 0 for one entry."""
    if value < 1:
        raise ValueError(f"a count must be at least 1, not {value!r}")
    return (value - 1).bit_length()


def sum_width(products: int) -> int:
    """Bits of a sum of so many products of operands from -255 to 255, sign included."""
    return (products * 255 * 255).bit_length() + 1


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class Config:
    """Sizes of one openmxu core; immutable and validated by its constructor.

    Parameters
    ----------
    size
        S: the array is S × S processing elements; a power of two from 2 to 256.
    unified_buffer_rows
        Rows of S bytes in the unified buffer; a multiple of ``unified_buffer_banks``, at most 2**24.
    unified_buffer_banks
        Block RAM banks that the rows are interleaved over; a power of two.
    accumulator_rows
        Rows of S × int32; even, at most 2**16.
    weight_fifo_tiles
        Tiles of S × S weights that the weight FIFO holds; at least 2.
    activation_lanes
        Columns that the activation unit finishes per cycle; divides S.
    parameter_sets
        Sets of S (bias, scale) pairs that the activation unit holds; at most 2**16.
    command_queue_depth
        Instructions that may be in flight in each unit; a power of two from 2 to 16. A core of the lite profile has no
        queues.
    weight_queue_depth
        Read_Weights and Load_Weights instructions that may be outstanding before their tiles are taken; from 1 to 64,
        in the lite profile 1.
    host_data_bytes, weight_data_bytes
        Width of one beat on the host and the weight memory ports, in bytes; a power of two from 4 to 64.
    host_address_width, weight_address_width
        Bits of a byte address on those ports, from 16 to 64.
    profile
        The part of the instruction set that the core executes, one of :data:`openmxu.arch.profile.PROFILES`:
        ``standard``, ``lite`` or ``full``.
    """

    size: int = 8
    unified_buffer_rows: int = 8192
    unified_buffer_banks: int = 2
    accumulator_rows: int = 1024
    weight_fifo_tiles: int = 16
    activation_lanes: int = 2
    parameter_sets: int = 64
    command_queue_depth: int = 4
    weight_queue_depth: int = 4
    host_data_bytes: int = 8
    weight_data_bytes: int = 8
    host_address_width: int = 32
    weight_address_width: int = 32
    profile: str = "standard"

    def __post_init__(self) -> None:
        if not isinstance(self.profile, str):
            raise TypeError(f"profile must be a str, not {self.profile!r}")
        profile_named(self.profile)
        for field in dataclasses.fields(Config):  # what a subclass adds, it validates itself
            if field.name == "profile":
                continue
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{field.name} must be an int, not {value!r}")
        self._between("size", 2, 256)
        self._power_of_two("size")
        self._between("unified_buffer_banks", 1, 16)
        self._power_of_two("unified_buffer_banks")
        self._between("unified_buffer_rows", 2 * self.unified_buffer_banks, 1 << 24)
        if self.unified_buffer_rows % self.unified_buffer_banks:
            raise ValueError(
                f"unified_buffer_rows must be a multiple of unified_buffer_banks "
                f"({self.unified_buffer_banks}), not {self.unified_buffer_rows}"
            )
        self._between("accumulator_rows", 4, 1 << 16)
        if self.accumulator_rows % 2:
            raise ValueError(f"accumulator_rows must be even, not {self.accumulator_rows}")
        self._between("weight_fifo_tiles", 2, 256)
        self._between("activation_lanes", 1, self.size)
        if self.size % self.activation_lanes:
            raise ValueError(f"activation_lanes must divide size ({self.size}), not {self.activation_lanes}")
        self._between("parameter_sets", 1, 1 << 16)
        self._between("command_queue_depth", 2, 16)
        self._power_of_two("command_queue_depth")
        self._between("weight_queue_depth", 1, 64)
        if self.features.is_sequential and self.weight_queue_depth != 1:
            raise ValueError(
                f"weight_queue_depth must be 1 in the profile {self.profile}, not {self.weight_queue_depth}"
            )
        for name in ("host_data_bytes", "weight_data_bytes"):
            self._between(name, 4, 64)
            self._power_of_two(name)
        for name in ("host_address_width", "weight_address_width"):
            self._between(name, 16, 64)

    def _between(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high}, not {value}")

    def _power_of_two(self, name: str) -> None:
        value = getattr(self, name)
        if not _is_power_of_two(value):
            raise ValueError(f"{name} must be a power of two, not {value}")

    @classmethod
    def preset(cls, name: str, **changes: int | str) -> Config:
        """The named configuration, with the given parameters changed; a given profile as in :meth:`for_size`.

        Raises
        ------
        ValueError
            The name is unknown; the message lists the known ones.
        """
        try:
            parameters = PRESETS[name]
        except KeyError:
            raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}") from None
        values: dict[str, Any] = {**parameters, **_needed_by_profile(changes), **changes}
        return cls(**values)

    @classmethod
    def for_size(cls, size: int, **changes: int | str) -> Config:
        """The default configuration at array size ``size``.

        Block RAMs of 512 rows are filled, by 4 to 16 tiles of the weight FIFO. Up to S = 8 there are activation lanes
        for a quarter of the columns; from S = 16 on for half of them, 128 parameter sets, and the profile ``full`` with
        a longer queue of weights: a tile takes longer on the weight bus than in the array, and Load_Weights brings
        others through the host port.
        With a sequential profile among the changes one Read_Weights may be outstanding.
        """
        values: dict[str, Any] = {"size": size}
        if isinstance(size, int) and size > 0:
            is_large = size >= 16
            values["activation_lanes"] = max(1, size // 2 if is_large else size // 4)
            values["weight_fifo_tiles"] = max(4, min(16, 512 // size))
            values["parameter_sets"] = 128 if is_large else 64
            values["profile"] = "full" if is_large else "standard"
            values["weight_queue_depth"] = 8 if is_large else 4
        return cls(**{**values, **_needed_by_profile(changes), **changes})

    def replace(self, **changes: int | str) -> Config:
        """A copy with the given parameters changed, validated again."""
        values: dict[str, Any] = changes
        return dataclasses.replace(self, **values)

    def as_dict(self) -> dict[str, int | str]:
        """Every parameter by name; ``Config(**config.as_dict())`` is the same configuration."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Config)}

    @property
    def fingerprint(self) -> str:
        """A short stable hash of all parameters, for caches and file names."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def features(self) -> Profile:
        """The features of this profile."""
        return profile_named(self.profile)

    @property
    def column_groups(self) -> int:
        """Cycles that the activation unit needs for one row: S ÷ ``activation_lanes``."""
        return self.size // self.activation_lanes

    @property
    def tile_bytes(self) -> int:
        """Bytes of one weight tile in weight memory."""
        return self.size * self.size

    @property
    def unified_buffer_address_width(self) -> int:
        """Bits of a unified buffer row address."""
        return ceil_log2(self.unified_buffer_rows)

    @property
    def accumulator_address_width(self) -> int:
        """Bits of an accumulator row address."""
        return ceil_log2(self.accumulator_rows)

    @property
    def parameter_set_width(self) -> int:
        """Bits of a parameter set number, at least 1."""
        return max(1, ceil_log2(self.parameter_sets))

    @property
    def host_alignment(self) -> int:
        """Host addresses and strides are multiples of this many bytes: the smaller of a row and a beat."""
        return min(self.size, self.host_data_bytes)

    @property
    def weight_alignment(self) -> int:
        """Weight memory addresses are multiples of this many bytes: the smaller of a tile and a beat."""
        return min(self.tile_bytes, self.weight_data_bytes)

    @property
    def partial_sum_width(self) -> int:
        """Bits of a sum of S products, see :func:`sum_width`.

        No sum within one column leaves this range, so a partial sum of this width equals one of 32 bits that wraps.
        """
        return sum_width(self.size)


def _needed_by_profile(changes: Mapping[str, int | str]) -> dict[str, int]:
    """The parameters for which the profile among ``changes`` leaves one value."""
    profile = changes.get("profile")
    is_sequential = any(known.is_sequential for known in PROFILES if known.name == profile)
    return {"weight_queue_depth": 1} if is_sequential else {}


_SMALL_FPGA: dict[str, int | str] = {
    "size": 4,
    "unified_buffer_banks": 1,
    "accumulator_rows": 256,
    "weight_fifo_tiles": 2,
    "activation_lanes": 1,
    "parameter_sets": 32,
    "weight_queue_depth": 1,
    "host_data_bytes": 4,
    "weight_data_bytes": 4,
    "host_address_width": 20,
    "weight_address_width": 20,
    "profile": "lite",
}

PRESETS: dict[str, dict[str, int | str]] = {
    "tiny": {
        "size": 4,
        "unified_buffer_rows": 512,
        "accumulator_rows": 128,
        "weight_fifo_tiles": 4,
        "activation_lanes": 1,
        "parameter_sets": 16,
        "weight_queue_depth": 8,
    },
    "icebreaker": _SMALL_FPGA | {"unified_buffer_rows": 16384},
    "tang_nano_9k": _SMALL_FPGA | {"unified_buffer_rows": 4096},
    "default": {},
    "medium": {"size": 16, "activation_lanes": 4, "unified_buffer_rows": 16384},
    "tpu_v1": {
        "size": 256,
        "unified_buffer_rows": 98304,
        "unified_buffer_banks": 4,
        "accumulator_rows": 4096,
        "weight_fifo_tiles": 4,
        "activation_lanes": 256,
        "parameter_sets": 256,
        "command_queue_depth": 16,
        "host_data_bytes": 64,
        "weight_data_bytes": 64,
        "host_address_width": 64,
        "weight_address_width": 64,
    },
}
"""Named parameter sets for :meth:`Config.preset`. ``tpu_v1`` has the sizes of the TPU paper: 256 × 256 elements, a
24 MiB unified buffer, 4 MiB of accumulators, four tiles of weights, and 64-byte beats (44.8 GB/s at 700 MHz). Its
queues are deep because sums are on their way for two times 256 cycles, longer than several short products take.
``icebreaker`` is for the iCE40 UP5K, whose SPRAM becomes the unified buffer, and ``tang_nano_9k`` for the GW1NR-9C,
which has block RAM only; ``default`` is the core of ULX3S-85F."""
