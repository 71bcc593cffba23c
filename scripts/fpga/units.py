"""Logic by unit: the component of the design that each cell of a flat netlist belongs to."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from scripts.fpga.critical_path import component_of

__all__ = ["LOGIC_CELLS", "logic_cells", "table", "units_of"]

LOGIC_CELLS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
"""Logic cells (TRELLIS_COMB) of each cell of an ECP5; nextpnr adds one block at the head of each carry chain."""

_ANONYMOUS = {"LUT4", "PFUMX", "L6MUX21"}
"""Cells that abc makes: their names carry no information, but those of the nets that they drive may."""

_COLUMNS = ("TRELLIS_FF", "LUT4", "CCU2C", "TRELLIS_DPR16X4", "MULT18X18D", "DP16KD")


def units_of(module: Mapping[str, Any], modules: Collection[str]) -> dict[str, str]:
    """The component of every cell, as a path of Amaranth's names.

    A cell belongs to the component in its name, or in the name of the net that it drives. A cell that drives only
    nameless nets belongs to the component of most cells that read them.

    Parameters
    ----------
    module
        The top module of a netlist in Yosys' JSON.
    modules
        Paths of the components.
    """
    cells = {name: cell for name, cell in module["cells"].items() if cell["type"] != "$scopeinfo"}
    nets = _named_nets(module, modules)
    readers: dict[int, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        for bit in _bits(cell, "input"):
            readers[bit].append(name)
    units: dict[str, str] = {}
    for name, cell in cells.items():
        named = "" if cell["type"] in _ANONYMOUS else component_of(_plain(name), modules)
        unit = named or next((nets[bit] for bit in _bits(cell, "output") if bit in nets), "")
        if unit:
            units[name] = unit
    rest = [name for name in cells if name not in units]
    while rest:
        found = {}
        for name in rest:
            votes = Counter(
                units[reader] for bit in _bits(cells[name], "output") for reader in readers[bit] if reader in units
            )
            if votes:
                found[name] = votes.most_common(1)[0][0]
        if not found:
            break
        units |= found
        rest = [name for name in rest if name not in units]
    return units | dict.fromkeys(rest, "")


def logic_cells(types: Mapping[str, int]) -> int:
    """Number of logic cells for the given numbers of cells of each type."""
    return sum(LOGIC_CELLS.get(kind, 0) * count for kind, count in types.items())


def table(module: Mapping[str, Any], modules: Collection[str], depth: int) -> str:
    """A line for each component down to a depth, including its subcomponents, the largest first at each level.

    Components of one parent whose names differ only in numbers at the end share a line, with how many they are.
    """
    totals: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    components: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for cell, unit in units_of(module, modules).items():
        names = unit.split(".") if unit else []
        path = tuple(re.sub(r"(_\d+)+$", "", name) for name in names)
        for length in range(min(depth, len(path)) + 1):
            totals[path[:length]][module["cells"][cell]["type"]] += 1
            components[path[:length]].add(".".join(names[:length]))
    head = ("unit", "logic cells", "flip-flops", "LUT4", "CCU2C", "DPR16X4", "multipliers", "block RAM")
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]

    def add(path: tuple[str, ...]) -> None:
        types = totals[path]
        name = "all" if not path else f"{'· ' * (len(path) - 1)}{path[-1]}"
        if len(components[path]) > 1:
            name += f" × {len(components[path])}"
        numbers = (logic_cells(types), *(types[column] for column in _COLUMNS))
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
        inner = [other for other in totals if len(other) == len(path) + 1 and other[: len(path)] == path]
        for other in sorted(inner, key=lambda other: (-logic_cells(totals[other]), other)):
            add(other)

    add(())
    return "\n".join(lines) + "\n"


def _named_nets(module: Mapping[str, Any], modules: Collection[str]) -> dict[int, str]:
    """The innermost component in which each net has a name."""
    nets: dict[int, str] = {}
    for name, net in module["netnames"].items():
        unit = component_of(_plain(name), modules)
        for bit in net["bits"]:
            if unit and isinstance(bit, int) and len(unit) > len(nets.get(bit, "")):
                nets[bit] = unit
    return nets


def _plain(name: str) -> str:
    """A hierarchical name without Yosys' prefixes and suffixes."""
    return re.sub(r"\$(?!\d+\.).*$", "_", name.replace("\\", "").removeprefix("$flatten"))


def _bits(cell: Mapping[str, Any], direction: str) -> list[int]:
    """The nets at a cell's inputs, or at its outputs."""
    ports = cell["port_directions"]
    found = (bits for port, bits in cell["connections"].items() if ports.get(port) == direction)
    return [bit for bits in found for bit in bits if isinstance(bit, int)]
