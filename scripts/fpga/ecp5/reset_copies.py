"""A reset that goes to many flip-flops is made again beside each unit that it resets.

ECP5 has no net for resets that reaches everything as a clock does. One driver for thousands of flip-flops all over the
part is slow, and whatever else has to wait for the reset comes later still. With a driver of its own a unit's reset
crosses the part as the input of that driver, which has a cycle for it.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["copy_resets"]

_MANY = 512
"""A net that resets as many flip-flops has copies."""

_READERS = 256
"""Of a copy; more only within one module."""

_FEW = 20
"""A register with fewer readers is copied with the logic behind it: it is there for that."""

_RESET, _REGISTER, _LOGIC = "LSR", "TRELLIS_FF", "LUT4"


class _Pin(NamedTuple):
    cell: str
    port: str
    place: int


def copy_resets(netlist: dict[str, Any], top: str) -> int:
    """Make the copies in a netlist as Yosys writes it, in place; what each flip-flop gets remains the same.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The module that is flat; names of its cells are paths of the hierarchy that was.

    Returns
    -------
    int
        How many drivers have been added.
    """
    module = netlist["modules"][top]
    cells = module["cells"]
    drivers, readers = _connections(cells)
    free = 1 + max(bit for bit in (*drivers, *readers, *_port_bits(module)) if isinstance(bit, int))
    added = 0
    for bit, pins in list(readers.items()):
        driver = drivers.get(bit)
        if driver is None or sum(pin.port == _RESET for pin in pins) < _MANY:
            continue
        logic = cells[driver.cell]
        if logic["type"] not in (_LOGIC, _REGISTER):
            continue
        for group in _near_each_other(pins)[1:]:
            added += 1
            made = copy.deepcopy(logic)
            cells[f"{driver.cell}$copy{added}"] = made
            made["connections"][driver.port] = [free]
            for pin in group:
                cells[pin.cell]["connections"][pin.port][pin.place] = free
            free += 1
            if logic["type"] == _REGISTER:
                continue
            for port, bits in made["connections"].items():
                source = drivers.get(bits[0])
                if port == driver.port or source is None or len(readers[bits[0]]) >= _FEW:
                    continue
                if cells[source.cell]["type"] == _REGISTER:
                    register = copy.deepcopy(cells[source.cell])
                    register["connections"][source.port] = [free]
                    cells[f"{source.cell}$copy{added}"] = register
                    made["connections"][port] = [free]
                    free += 1
    return added


def _near_each_other(pins: Iterable[_Pin]) -> list[list[_Pin]]:
    """Pins by the units of their cells, the small ones together; all of them at the end of the list, if not alone."""
    groups, rest = _by_unit([(pin.cell.split(".")[:-1], pin) for pin in pins], 1)
    return [*([rest] if rest else []), *groups]


def _by_unit(pins: list[tuple[list[str], _Pin]], depth: int) -> tuple[list[list[_Pin]], list[_Pin]]:
    """Groups of pins whose paths begin alike for ``depth`` names or more, and those that are in none."""
    units: defaultdict[tuple[str, ...], list[tuple[list[str], _Pin]]] = defaultdict(list)
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


def _connections(cells: dict[str, Any]) -> tuple[dict[Any, _Pin], defaultdict[Any, list[_Pin]]]:
    """What drives each bit, and what reads it."""
    drivers: dict[Any, _Pin] = {}
    readers: defaultdict[Any, list[_Pin]] = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            is_output = cell["port_directions"][port] == "output"
            for place, bit in enumerate(bits):
                if is_output:
                    drivers[bit] = _Pin(name, port, place)
                else:
                    readers[bit].append(_Pin(name, port, place))
    return drivers, readers


def _port_bits(module: dict[str, Any]) -> list[Any]:
    return [bit for port in module["ports"].values() for bit in port["bits"]]
