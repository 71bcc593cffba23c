"""Copies the driver of a reset with many flip-flops for each unit that it resets.

ECP5 has no global net for resets as for clocks. One driver for thousands of flip-flops all over the part is slow, and
so is all logic that uses the reset. With a separate driver for each unit, the reset crosses the part as the input of
that driver, which has a cycle for it.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any

from scripts.fpga.ecp5.connections import Pin, drivers, last_net, readers

__all__ = ["copy_resets"]

_MANY = 512
"""A net that resets at least this many flip-flops is copied."""

_READERS = 256
"""Readers of a copy; more only within one module."""

_FEW = 20
"""A register with fewer readers is copied with the logic that it drives: it exists only for that."""

_RESET, _REGISTER, _LOGIC = "LSR", "TRELLIS_FF", "LUT4"


def copy_resets(netlist: dict[str, Any], top: str) -> int:
    """Make the copies in a netlist of Yosys, in place; the function of the netlist does not change.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The flattened module; names of its cells are paths in the former hierarchy.

    Returns
    -------
    int
        Number of drivers added.
    """
    module = netlist["modules"][top]
    cells = module["cells"]
    driven_by, read_by = drivers(module), readers(module)
    fresh = last_net(module)
    added = 0

    def add(name: str, port: str) -> dict[str, Any]:
        """A copy of a cell that drives a new bit."""
        nonlocal fresh
        fresh += 1
        made: dict[str, Any] = copy.deepcopy(cells[name])
        made["connections"][port] = [fresh]
        cells[f"{name}$copy{added}"] = made
        return made

    for bit, pins in list(read_by.items()):
        if bit not in driven_by or sum(port == _RESET for _, port in pins) < _MANY:
            continue
        name, output = driven_by[bit]
        if cells[name]["type"] not in (_LOGIC, _REGISTER):
            continue
        for group in _near_each_other([pin for pin in pins if pin[0]])[1:]:
            added += 1
            made = add(name, output)
            for cell, port in group:
                inputs = cells[cell]["connections"]
                inputs[port] = [made["connections"][output][0] if one == bit else one for one in inputs[port]]
            if made["type"] == _REGISTER:
                continue
            for port, (source,) in made["connections"].items():
                if port == output or source not in driven_by or len(read_by[source]) >= _FEW:
                    continue
                register, q = driven_by[source]
                if cells[register]["type"] == _REGISTER:
                    made["connections"][port] = add(register, q)["connections"][q]
    return added


def _near_each_other(pins: list[Pin]) -> list[list[Pin]]:
    """Groups of pins whose cells are in one unit; the first group collects the pins of units with few of them."""
    groups, rest = _by_unit([(cell.split(".")[:-1], (cell, port)) for cell, port in pins], 1)
    return [*([rest] if rest else []), *groups]


def _by_unit(pins: list[tuple[list[str], Pin]], depth: int) -> tuple[list[list[Pin]], list[Pin]]:
    """Groups of pins whose paths share at least the first ``depth`` names, and the pins in no group."""
    units: defaultdict[tuple[str, ...], list[tuple[list[str], Pin]]] = defaultdict(list)
    for path, pin in pins:
        units[tuple(path[:depth])].append((path, pin))
    groups, rest = [], []
    for unit in units.values():
        if len(unit) > _READERS and any(len(path) > depth for path, _ in unit):
            inner, left = _by_unit(unit, depth + 1)
            groups += inner
            if len(left) >= _READERS // 8:
                groups.append(left)
            else:
                rest += left
        elif len(unit) < _READERS // 8:
            rest += [pin for _, pin in unit]
        else:
            groups.append([pin for _, pin in unit])
    return groups, rest
