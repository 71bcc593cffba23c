"""The description of a sweep: networks, and values for each parameter of core and memories."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openmxu.arch import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.memory_timing import MOST_LATENCY, RATE_RANGE, read_rate

__all__ = ["RATES", "Settings", "SweepError", "expanded", "read_settings"]

RATES = ("host_rate", "weight_rate")
_TEXTS = ("preset", "profile")
_PARAMETERS = (*(field.name for field in dataclasses.fields(Config)), "preset", "bus_bytes", "memory_latency", *RATES)
_KEYS = ("networks", "batch", "effort", "configurations")

Value = int | str
"""Of a parameter; a rate is the text of a fraction."""


class SweepError(OpenmxuError, ValueError):
    """A sweep is not well described. The message is one line."""


@dataclass(frozen=True)
class Settings:
    """A sweep.

    Attributes
    ----------
    networks
        Their names.
    batch, effort
        As of :func:`openmxu.compile`; ``None`` where nothing is said.
    configurations
        Values by the name of their parameter.
    """

    networks: tuple[str, ...]
    batch: int | None
    effort: int | None
    configurations: tuple[Mapping[str, Value], ...]


def read_settings(text: str) -> Settings:
    """Read a TOML file: ``networks``, ``batch``, ``effort`` and tables ``[[configurations]]``.

    Raises
    ------
    SweepError
        It is no TOML, or a key or a value is unknown.
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SweepError(str(error)) from None
    for key in given:
        _known(key, _KEYS, "key")
    networks = given.get("networks", [])
    if not isinstance(networks, list) or not all(isinstance(name, str) for name in networks):
        raise SweepError(f"networks must be a list of names, not {networks!r}")
    for name, least in (("batch", 1), ("effort", 0)):
        value = given.get(name)
        if value is not None and (not _is_int(value) or value < least):
            raise SweepError(f"{name} must be an integer from {least} on, not {value!r}")
    tables = given.get("configurations", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SweepError("configurations must be tables, each of which begins with [[configurations]]")
    return Settings(
        tuple(networks),
        given.get("batch"),
        given.get("effort"),
        tuple(configuration for table in tables for configuration in expanded(table)),
    )


def expanded(table: Mapping[str, Any]) -> list[dict[str, Value]]:
    """All combinations of values; a parameter has one value or a list of them, and the last one changes first.

    Raises
    ------
    SweepError
        A parameter is unknown, a value has the wrong type, or a list is empty.
    """
    choices: list[list[Value]] = []
    for name, given in table.items():
        _known(name, _PARAMETERS, "parameter")
        values = given if isinstance(given, list) else [given]
        if not values:
            raise SweepError(f"{name} has no values")
        choices.append([_checked(name, value) for value in values])
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*choices)]


def _checked(name: str, value: object) -> Value:
    if name in _TEXTS:
        if isinstance(value, str):
            return value
        raise SweepError(f"{name} must be a text, not {value!r}")
    if name in RATES:
        rate = read_rate(str(value))
        if rate is None:
            raise SweepError(f"{name} must be a number of bytes per cycle {RATE_RANGE}, not {value!r}")
        return str(rate)
    if not _is_int(value):
        raise SweepError(f"{name} must be an integer, not {value!r}")
    assert isinstance(value, int)
    if name == "memory_latency" and not 1 <= value <= MOST_LATENCY:
        raise SweepError(f"memory_latency must be from 1 to {MOST_LATENCY}, not {value}")
    return value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _known(name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"is {near[0]!r} meant?" if near else f"known: {', '.join(names)}"
        raise SweepError(f"unknown {what} {name!r}; {hint}")
