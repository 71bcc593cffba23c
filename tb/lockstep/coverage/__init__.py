"""Functional coverage of random programs: the cases to be tested, and how often each occurred.

A bin is an event that depends only on the instructions of a program and the environment of the device; internal state
of the device is not observed. Bins that no legal program can reach are not declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from openmxu.arch.config import Config
from openmxu.arch.faults import CORE_FAULTS
from tb.lockstep.case import Case
from tb.lockstep.coverage.bins import Bin, Coverage
from tb.lockstep.coverage.faults import FAULTS, Faults
from tb.lockstep.coverage.geometry import Geometry
from tb.lockstep.coverage.hazards import HAZARDS, Hazards
from tb.lockstep.coverage.modes import Modes
from tb.lockstep.coverage.tiles import Tiles
from tb.lockstep.programs.environment import LATENCIES, STALL_KINDS, STREAMS, environment
from tb.lockstep.programs.steps import steps

__all__ = ["Bin", "Coverage", "declare", "observe"]

_CROSSED = ("multiplications", "lanes", HAZARDS)
"""Groups whose bins must each be hit with every kind of stalls."""


def declare(configs: Sequence[Config]) -> Coverage:
    """All bins that cases of these configurations can reach, with no hits."""
    groups: dict[str, list[str]] = {}
    for observer in (Modes, Hazards, Tiles, Geometry, Faults):
        groups |= observer.declared(configs)
    groups["streams that stall alone"] = list(STREAMS)
    groups["memory latencies"] = [str(latency) for latency in LATENCIES]
    names = [_name(config) for config in configs]
    groups["configurations × stalls"] = _crossed(names)
    groups["faults × stalls"] = _crossed([code.name for code in CORE_FAULTS])
    for group in _CROSSED:
        groups[f"{group} × stalls"] = _crossed(groups[group])
    return Coverage(groups)


def observe(case: Case) -> Counter[Bin]:
    """The bins hit by a case in its environment."""
    observers = (
        Modes(case.config),
        Hazards(case.config),
        Tiles(case.config),
        Geometry(case.config, case.host_memory.size, case.weight_memory.size),
        Faults(),
    )
    hits: Counter[Bin] = Counter()
    for step in steps(case):
        for observer in observers:
            hits.update(observer.observe(step))
    surroundings = environment(case.seed)
    stalls = surroundings.stalls
    for (group, name), count in list(hits.items()):
        if group in _CROSSED:
            hits[f"{group} × stalls", f"{name}, {stalls}"] += count
        if group == FAULTS:
            hits["faults × stalls", f"{name.split()[0]}, {stalls}"] += count
    hits["configurations × stalls", f"{_name(case.config)}, {stalls}"] += 1
    hits["memory latencies", str(surroundings.latency)] += 1
    if stalls == "one stream":
        hits["streams that stall alone", surroundings.streams[0]] += 1
    return hits


def _crossed(names: Sequence[str]) -> list[str]:
    return [f"{name}, {kind}" for name, kind in product(names, STALL_KINDS)]


def _name(config: Config) -> str:
    return f"S = {config.size}, {config.activation_lanes} lanes, command queues of {config.command_queue_depth}"
