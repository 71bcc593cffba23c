"""Places for block RAM and multiplier blocks near the cells that a first placement has put around them.

A placer that places blocks one after the other, at random, leaves many far from the cells that they are connected to.
This module assigns all blocks together to the part's places such that, with the logic in place, the squares of the
lengths of wires are least, and blocks that share factors are near each other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scripts.fpga.ecp5.block_groups import assign_places, groups_of

__all__ = ["match_blocks", "sites_to_match"]

_SITE = re.compile(r"X(\d+)/Y(\d+)/")
_FEW = 40
"""Nets with more cells say little about the best place of one of them."""


def sites_to_match(types: Mapping[str, int], sites: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The places of those types of blocks that need more than a quarter of them: the others easily find good ones."""
    return {kind: names for kind, names in sites.items() if 4 * types.get(kind, 0) > len(names)}


def match_blocks(
    netlist: dict[str, Any], top: str, sites: Mapping[str, Sequence[str]], placed: Mapping[str, Any]
) -> int:
    """Assign each unplaced block in a netlist of Yosys a place near the cells that it is connected to.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The flattened module.
    sites
        All places for each type of block to assign.
    placed
        The contents of nextpnr's JSON file of the same netlist, with a place for every cell.

    Returns
    -------
    int
        Number of blocks that were assigned a place.
    """
    cells = netlist["modules"][top]["cells"]
    (flat,) = placed["modules"].values()  # nextpnr renames it
    neighbours = _Neighbours(flat, sites)
    matched = 0
    for kind, names in sites.items():
        taken = {cell["attributes"]["BEL"] for cell in cells.values() if "BEL" in cell["attributes"]}
        blocks = [name for name, cell in cells.items() if cell["type"] == kind and "BEL" not in cell["attributes"]]
        free = [name for name in names if name not in taken]
        if not blocks:
            continue
        places = np.array([_position(name) for name in free])
        costs = np.stack([_wire(places, neighbours.of(block)) for block in blocks])
        for block, site in zip(blocks, assign_places(costs, places, groups_of(cells, blocks)), strict=True):
            cells[block]["attributes"]["BEL"] = free[site]
        matched += len(blocks)
    return matched


class _Neighbours:
    """The places of the cells that blocks are connected to."""

    def __init__(self, module: Mapping[str, Any], kinds: Iterable[str]) -> None:
        self._cells = module["cells"]
        self._kinds = frozenset(kinds)
        self._nets: defaultdict[int, list[str]] = defaultdict(list)
        for name, cell in self._cells.items():
            if _SITE.match(cell["attributes"].get("NEXTPNR_BEL", "")):
                for bit in _bits(cell):
                    self._nets[bit].append(name)
        # Constants have nets, too.
        for name, net in module["netnames"].items():
            if name.startswith("$PACKER_"):
                for bit in net["bits"]:
                    self._nets.pop(bit, None)

    def of(self, block: str) -> NDArray[np.float64]:
        """One row for each cell at the other end of a net: x, y and its share of the net. Blocks move as well."""
        rows = []
        for bit in _bits(self._cells[block]):
            others = [name for name in self._nets.get(bit, ()) if self._cells[name]["type"] not in self._kinds]
            if 0 < len(others) <= _FEW:
                rows += [
                    (*_position(self._cells[name]["attributes"]["NEXTPNR_BEL"]), 1 / len(others)) for name in others
                ]
        return np.array(rows, float).reshape(-1, 3)


def _bits(cell: Mapping[str, Any]) -> Iterable[int]:
    return (bit for port, bits in cell["connections"].items() if "CLK" not in port for bit in bits)


def _position(site: str) -> tuple[int, int]:
    found = _SITE.match(site)
    assert found is not None, site
    return int(found[1]), int(found[2])


def _wire(places: NDArray[np.int64], neighbours: NDArray[np.float64]) -> NDArray[np.float64]:
    """The squares of the wire lengths that a block needs at each place: with the lengths themselves, many blocks are a
    little nearer and a few very far."""
    distances = np.abs(places[:, None, :] - neighbours[None, :, :2]).sum(axis=2)
    return distances**2 @ neighbours[:, 2]
