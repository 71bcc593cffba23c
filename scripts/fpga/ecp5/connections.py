"""Drivers and readers of the bits of a flat netlist of Yosys."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

__all__ = ["drivers", "last_net", "readers"]

Pin = tuple[str, str]
"""A cell and its port; for a port of the module the cell is empty."""


def drivers(module: dict[str, Any]) -> dict[int, Pin]:
    """The cell and port that drives each bit; bits from outside have no driver."""
    return {
        bit: (name, port)
        for name, cell in module["cells"].items()
        for port, bits in cell["connections"].items()
        if cell["port_directions"][port] == "output"
        for bit in bits
        if isinstance(bit, int)
    }


def readers(module: dict[str, Any]) -> defaultdict[Any, list[Pin]]:
    """The cells and ports that read each bit; constants are left out."""
    found: defaultdict[Any, list[Pin]] = defaultdict(list)
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for bit in bits:
                    if isinstance(bit, int):
                        found[bit].append((name, port))
    for name, port in module["ports"].items():
        if port["direction"] != "input":
            for bit in port["bits"]:
                if isinstance(bit, int):
                    found[bit].append(("", name))
    return found


def last_net(module: dict[str, Any]) -> int:
    """The highest net number: numbers above it are free for new nets."""
    named = (bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int))
    return max((*drivers(module), *readers(module), *named))
