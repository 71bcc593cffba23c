"""Shortens carry chains to the slices that their bits need.

Yosys starts a chain of ECP5's CCU2C with a constant carry and leaves its last carry unconnected; nextpnr then adds a
cell in front of the chain that feeds the constant in, and one at its end that brings the carry out: four logic cells
for each chain, whatever its length. Here the carry enters through a half of the chain's own cells, and unused carries
are cut off.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scripts.fpga.ecp5.connections import Pin, last_net, readers

__all__ = ["leave_open", "shorten_carry_chains"]

_CELL = "CCU2C"
_INPUTS = "ABCD"
_NOTHING = ("0", "0", "0", "0")
_BRING_IN = 0b1010
"""Table of a half that carries its input A if D is 1: its upper entries, which would propagate the carry, are 0."""

Bit = int | str
"""A net, or a constant: ``"0"``, ``"1"`` or ``"x"``."""


@dataclass(frozen=True)
class _Half:
    """One bit of a chain: its sum is the table at A, B, C, D plus the carry in; its carry out is the table at A, B if
    the former is 0, else the carry in."""

    inputs: tuple[Bit, Bit, Bit, Bit]
    table: int
    sum: Bit | None = None

    @classmethod
    def of(cls, cell: dict[str, Any], half: int) -> _Half:
        inputs = tuple(cell["connections"][f"{port}{half}"][0] for port in _INPUTS)
        total = cell["connections"].get(f"S{half}") or [None]
        return cls(inputs, int(cell["parameters"][f"INIT{half}"], 2), total[0])

    @classmethod
    def bringing_in(cls, carry: Bit, table: int = _BRING_IN, other: Bit = "0") -> _Half:
        """A half whose carry out is ``table`` at one or two nets, regardless of its carry in."""
        return cls((carry, other, "1", "1"), table)

    def carries(self, carry: int, at: int) -> int:
        """Its carry out for a carry in and the values of its inputs, the bits of ``at``."""
        return carry if self.table >> at & 1 else self.table >> (at & 3) & 1


def shorten_carry_chains(netlist: dict[str, Any], top: str) -> int:
    """Shorten the carry chains in a netlist of Yosys, in place.

    Chains whose carry is also read by other cells in between keep their cells.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The flattened module.

    Returns
    -------
    int
        Number of logic cells that nextpnr saves.
    """
    module = netlist["modules"][top]
    cells = module["cells"]
    reads = readers(module)
    saved = 0
    fresh = last_net(module)
    for names in list(_chains(cells, reads)):
        chain = [cells[name] for name in names]
        *between, last = [cell["connections"]["COUT"][0] for cell in chain]
        halves = [_Half.of(cell, half) for cell in chain for half in (0, 1)]
        while halves and not (reads[halves[-1].sum] or reads[last]):
            halves.pop()
        if reads[last]:
            halves.append(_Half(_NOTHING, 0, last))
        halves, lookup = _with_carry(halves, chain[0]["connections"]["CIN"][0], reads)
        needed = (len(halves) + 1) // 2
        is_plain = all(cell["parameters"][f"INJECT1_{half}"].strip() == "NO" for cell in chain for half in (0, 1))
        if needed > len(chain) + 1 or any(len(reads[carry]) > 1 for carry in between) or not is_plain:
            if not reads[last]:
                del chain[-1]["connections"]["COUT"]
                saved += 2
            continue
        if lookup is not None:
            cells[f"{names[0]}.first"] = lookup
        for name in names[needed:]:
            del cells[name]
        if needed > len(chain):
            fresh += 1
            chain[-1]["connections"]["COUT"] = [fresh]
            cells[f"{names[-1]}.last"] = more = copy.deepcopy(chain[-1])
            more["connections"] |= {"CIN": [fresh], "COUT": [fresh]}
            chain.append(more)
        _fill(chain[:needed], halves)
        # The cell in front and the one at the end are saved with the surplus ones.
        saved += 2 * (len(names) + 2 - needed) - (lookup is not None)
    return saved


def leave_open(netlist: dict[str, Any], top: str) -> None:
    """Connect the missing carry out of chains' last cells to nothing, which nextpnr requires."""
    for cell in netlist["modules"][top]["cells"].values():
        if cell["type"] == _CELL:
            cell["connections"].setdefault("COUT", ["x"])
            cell["port_directions"]["COUT"] = "output"


def _with_carry(
    halves: list[_Half], carry: Bit, reads: defaultdict[Any, list[Pin]]
) -> tuple[list[_Half], dict[str, Any] | None]:
    """The halves of a chain without a carry from outside, and a LUT that computes the first sum if the first half only
    carries."""
    first = halves[0]
    if len(halves) % 2 == 0 and carry in ("0", "1"):
        table = [first.carries(int(carry), at) for at in range(16)]
        known = [place for place, bit in enumerate(first.inputs) if bit not in ("0", "1", "x")]
        values = sum((bit == "1") << place for place, bit in enumerate(first.inputs))
        if len(known) <= 2:
            nets = [first.inputs[place] for place in known] + ["0"] * (2 - len(known))
            at = [values | sum((number >> n & 1) << place for n, place in enumerate(known)) for number in range(4)]
            half = _Half.bringing_in(nets[0], sum(table[place] << number for number, place in enumerate(at)), nets[1])
            if not reads[first.sum]:
                return [half, *halves[1:]], None
            inverts = 0xFFFF if carry == "1" else 0
            return [half, *halves[1:]], _lookup(first, first.table ^ inverts)
    return [_Half.bringing_in(carry), *halves], None


def _lookup(half: _Half, table: int) -> dict[str, Any]:
    connections: dict[str, list[Bit]] = {port: [bit] for port, bit in zip(_INPUTS, half.inputs, strict=True)}
    return {
        "hide_name": 0,
        "type": "LUT4",
        "parameters": {"INIT": f"{table:016b}"},
        "attributes": {},
        "port_directions": {**dict.fromkeys(_INPUTS, "input"), "Z": "output"},
        "connections": {**connections, "Z": [half.sum]},
    }


def _fill(chain: list[dict[str, Any]], halves: list[_Half]) -> None:
    """Put halves into the cells of a chain; its first carry in and last carry out are left unconnected."""
    spare = _Half(_NOTHING, 0)
    for number, cell in enumerate(chain):
        for half in (0, 1):
            place = 2 * number + half
            held = halves[place] if place < len(halves) else spare
            cell["parameters"][f"INIT{half}"] = f"{held.table:016b}"
            for port, bit in zip(_INPUTS, held.inputs, strict=True):
                cell["connections"][f"{port}{half}"] = [bit]
            cell["connections"].pop(f"S{half}", None)
            if held.sum is not None:
                cell["connections"][f"S{half}"] = [held.sum]
    chain[0]["connections"]["CIN"] = ["x"]
    del chain[-1]["connections"]["COUT"]


def _chains(cells: dict[str, Any], reads: defaultdict[Any, list[Pin]]) -> Iterator[list[str]]:
    """Names of the cells of each chain, in order."""
    chained = {name: cell["connections"] for name, cell in cells.items() if cell["type"] == _CELL}
    of_carry = {ports["CIN"][0]: name for name, ports in chained.items()}
    carried = {ports["COUT"][0] for ports in chained.values()}
    for name, ports in chained.items():
        if ports["CIN"][0] in carried:
            continue
        chain = [name]
        while (carry := chained[chain[-1]]["COUT"][0]) in of_carry and reads[carry]:
            chain.append(of_carry[carry])
        yield chain
