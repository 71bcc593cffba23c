"""Modules of Yosys's intermediate language, as Amaranth writes it: a statement in each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["IDENTIFIER", "Cell", "ModuleText", "Port", "modules_of"]

IDENTIFIER = re.compile(r"\\\S+")
"""A name that has been given by somebody; those that Amaranth numbers begin with a dollar sign."""

_MODULE = re.compile(r"^((?:attribute [^\n]*\n)*)module (\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
_WIRE = re.compile(r"^  wire width (?P<width>\d+) (?:(?P<kind>input|output|inout) \d+ +)?(?:signed )?(?P<name>\S+)$")
_CELL = re.compile(r"^  cell (\S+) (\S+)$")
_CONNECTION = re.compile(r"^    connect (\S+) (.*)$")


@dataclass(frozen=True)
class Port:
    """A port of a module.

    Attributes
    ----------
    name
        Its name, without the backslash.
    direction
        ``input``, ``output`` or ``inout``.
    width
        Bits.
    """

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class Cell:
    """An instance of a module or of one of Yosys's cells, and what its ports are connected to."""

    kind: str
    name: str
    connections: dict[str, str]


@dataclass(frozen=True)
class ModuleText:
    """A module.

    Attributes
    ----------
    name
        Its name, with the backslash.
    attributes
        The lines in front of it.
    lines
        Those inside.
    """

    name: str
    attributes: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def names(self) -> Iterator[str]:
        """Every given name of a wire, a memory or a cell, with the backslash, in the order of the text."""
        for line in self.lines:
            if line.startswith(("  wire ", "  memory ", "  cell ")) and (name := line.split()[-1]).startswith("\\"):
                yield name

    @property
    def ports(self) -> Iterator[Port]:
        """Its ports, in the order of the text."""
        for line in self.lines:
            if (wire := _WIRE.match(line)) and wire["kind"]:
                yield Port(wire["name"].removeprefix("\\"), wire["kind"], int(wire["width"]))

    @property
    def widths(self) -> dict[str, int]:
        """The bits of each wire, by its name with the backslash or the dollar sign."""
        return {wire["name"]: int(wire["width"]) for line in self.lines if (wire := _WIRE.match(line))}

    @property
    def cells(self) -> Iterator[Cell]:
        """Its instances, those of Yosys's cells included."""
        cell: Cell | None = None
        for line in self.lines:
            if found := _CELL.match(line):
                cell = Cell(found[1], found[2], {})
            elif cell is not None and (found := _CONNECTION.match(line)):
                cell.connections[found[1]] = found[2]
            elif cell is not None and line == "  end":
                yield cell
                cell = None


def modules_of(rtlil: str) -> Iterator[ModuleText]:
    """The modules of a text."""
    for found in _MODULE.finditer(rtlil):
        yield ModuleText(found[2], tuple(found[1].splitlines()), tuple(found[3].splitlines()))
