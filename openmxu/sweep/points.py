"""The points of a sweep: what they are, which are finished, and how their results become rows."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openmxu
from openmxu.arch import Config
from openmxu.cluster import Workers
from openmxu.sweep.journal import Journal
from openmxu.sweep.logic import measured_logic
from openmxu.sweep.measuring import Group, Memory, Model, Product, measure
from openmxu.sweep.settings import Settings, Value

__all__ = ["COLUMNS", "Point", "is_best", "measured_points", "points_of"]

_DEFAULT_LATENCY = 4
_FIELDS = tuple(field.name for field in dataclasses.fields(Config))
_MEMORY = ("memory_latency", "host_rate", "weight_rate")
_RESULTS = (
    *("cycles", "utilization", "bound", "bound_ratio", "limit", "multiply_adds"),
    *("host_read_bytes", "host_write_bytes", "weight_bytes", "instructions"),
)

COLUMNS = ("network", "batch", "effort", *_FIELDS, *_MEMORY, "multiply_adders", "logic_cells", *_RESULTS, "error")
"""Of a row."""


@dataclass(frozen=True)
class Point:
    """A network on a configuration with memories.

    Attributes
    ----------
    config
        ``None`` if the values make no configuration; ``error`` says why.
    values
        As the sweep gives them.
    """

    network: str
    batch: int | None
    effort: int
    values: Mapping[str, Value]
    memory: Memory
    config: Config | None
    error: str = ""

    def key(self, network: Product | Model) -> str:
        """A text that is equal for points whose results are equal."""
        assert self.config is not None
        memory = dataclasses.asdict(self.memory)
        parts = [openmxu.__version__, network.digest, self.batch, self.effort, self.config.as_dict(), memory]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """A value for each of :data:`COLUMNS`; ``None`` where there is none."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= {"network": self.network, "batch": self.batch, "effort": self.effort}
        row |= {name: value for name, value in self.values.items() if name in COLUMNS}
        row |= zip(_MEMORY, (self.memory.latency, self.memory.host_rate, self.memory.weight_rate), strict=True)
        if self.config is not None:
            row |= self.config.as_dict()
            row |= {"multiply_adders": self.config.size**2, "logic_cells": measured_logic(self.config)}
        return {**row, **result}


def points_of(settings: Settings) -> list[Point]:
    """The points of a sweep in the order of its rows: each network with each configuration."""
    points = []
    for network in settings.networks:
        for values in settings.configurations:
            memory = Memory(
                int(values.get("memory_latency", _DEFAULT_LATENCY)),
                *(None if values.get(name) is None else str(values[name]) for name in _MEMORY[1:]),
            )
            config, error = None, ""
            try:
                config = _config(values)
            except (ValueError, TypeError) as problem:
                error = str(problem)
            points.append(Point(network, settings.batch, settings.effort or 0, values, memory, config, error))
    return points


def _config(values: Mapping[str, Value]) -> Config:
    changes = {name: value for name, value in values.items() if name in _FIELDS}
    if "bus_bytes" in values:
        changes = {"host_data_bytes": values["bus_bytes"], "weight_data_bytes": values["bus_bytes"], **changes}
    if "preset" in values:
        return Config.preset(str(values["preset"]), **changes)
    size = changes.pop("size", Config().size)
    assert isinstance(size, int)
    return Config.for_size(size, **changes)


def measured_points(
    points: Sequence[Point],
    networks: Mapping[str, Product | Model],
    workers: Workers,
    journal: Journal,
    finished: Callable[[int], None],
) -> list[dict[str, Any]]:
    """Measure the points that the journal does not have; returns the rows of all of them, in their order.

    Parameters
    ----------
    networks
        By the names that the points have.
    finished
        Called with a number of further points that are finished, those of the journal first.

    Raises
    ------
    openmxu.cluster.WorkersError
        The workers are lost; the journal keeps what is finished.
    OSError
        The journal cannot be written.
    """
    keys = [None if point.config is None else point.key(networks[point.network]) for point in points]
    # Equal points are measured once.
    times = Counter(keys)
    missing = {
        key: point for key, point in zip(keys, points, strict=True) if key is not None and key not in journal.results
    }
    finished(sum(key not in missing for key in keys))
    groups: dict[tuple[str, Config], list[str]] = defaultdict(list)
    for key, point in missing.items():
        assert point.config is not None
        groups[point.network, point.config].append(key)
    # Small arrays first: their programs are long, and the last task should be a short one.
    parts = sorted(groups.values(), key=lambda part: _size(missing[part[0]]))
    tasks = [_group([missing[key] for key in part]) for part in parts]
    for number, results in workers.completed(measure, tasks, networks):
        journal.append(dict(zip(parts[number], results, strict=True)))
        finished(sum(times[key] for key in parts[number]))
    return [
        point.row({"error": point.error} if key is None else journal.results[key])
        for key, point in zip(keys, points, strict=True)
    ]


def _size(point: Point) -> int:
    """Size of the array of a point with a configuration."""
    assert point.config is not None
    return point.config.size


def _group(points: Sequence[Point]) -> Group:
    first = points[0]
    assert first.config is not None
    return Group(first.network, first.batch, first.effort, first.config, tuple(point.memory for point in points))


def is_best(rows: Sequence[Mapping[str, Any]], cost: str = "multiply_adders") -> list[bool]:
    """For each row whether no other needs fewer cycles at the same cost, or the same cycles at less.

    Rows are compared with those of the same network, batch and memories; a row without cycles or cost is never best.
    """
    comparable: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row["cycles"] is not None and row[cost] is not None:
            comparable[tuple(row[name] for name in ("network", "batch", *_MEMORY))].append(number)
    best = [False] * len(rows)
    for numbers in comparable.values():
        least = None
        for number in sorted(numbers, key=lambda number: (rows[number][cost], rows[number]["cycles"], number)):
            if least is None or rows[number]["cycles"] < least:
                best[number], least = True, rows[number]["cycles"]
    return best
