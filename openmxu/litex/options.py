"""Parameters of the core in a LiteX system: from a call, or from a command line like LiteX's own."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from openmxu.arch.config import PRESETS, Config

__all__ = ["add_openmxu_arguments", "openmxu_config"]

_DATA_WIDTHS = ("host_data_bytes", "weight_data_bytes")


def openmxu_config(
    *, preset: str | None = None, size: int | None = None, data_bytes: int | None = None, **parameters: int | str
) -> Config:
    """A configuration by its preset, or by the size of its array, with some parameters changed.

    Parameters
    ----------
    preset, size
        Name of a preset, or S; not both. An array of 8 × 8 without either.
    data_bytes
        Bytes of a beat on both memory ports, unless ``parameters`` names them: those of the memory's port.
    parameters
        Other values of :class:`openmxu.Config`, such as ``activation_lanes=4``.

    Raises
    ------
    ValueError
        Preset and size are both given, the preset is unknown, or a parameter is outside its range.
    TypeError
        There is no such parameter.
    """
    if preset is not None and size is not None:
        raise ValueError("preset and size exclude each other: a preset has a size")
    unknown = sorted(set(parameters) - {field.name for field in dataclasses.fields(Config)})
    if unknown:
        raise TypeError(f"{unknown[0]} is no parameter of openmxu.Config")
    widths = {} if data_bytes is None else dict.fromkeys(_DATA_WIDTHS, data_bytes)
    changes: dict[str, Any] = {**widths, **parameters}
    if preset is not None:
        return Config.preset(preset, **changes)
    return Config.for_size(8 if size is None else size, **changes)


def add_openmxu_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--openmxu-size``, ``--openmxu-preset`` and one option for each parameter of :class:`openmxu.Config`.

    ``vars(arguments)`` then has, below ``openmxu_``, what :func:`openmxu_config` and ``add_openmxu`` take; options that
    were not used are ``None``.
    """
    group = parser.add_argument_group("openmxu options")
    group.add_argument("--openmxu-preset", choices=PRESETS, help="named configuration of the core")
    for field in dataclasses.fields(Config):
        kind = str if field.name == "profile" else int
        option = f"--openmxu-{field.name.replace('_', '-')}"
        group.add_argument(option, type=kind, metavar=kind.__name__.upper(), help=f"{field.name} of openmxu.Config")
