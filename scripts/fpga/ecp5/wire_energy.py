"""The squares of all wires' lengths as a function of the places of blocks alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import cg

__all__ = ["WireEnergy", "position"]

_SITE = re.compile(r"X(\d+)/Y(\d+)/")
_MANY = 40
"""Nets with more readers say little about the best place of one of their cells."""

_HOLD = 0.02
"""How strongly a cell is drawn to its first place, in full wires. Without it all cells would stand in one place."""

_PINS = "TRELLIS_IO"
"""Cells that stay where they are."""


def position(site: str) -> tuple[int, int]:
    """Column and row of a site."""
    found = _SITE.match(site)
    assert found is not None, site
    return int(found[1]), int(found[2])


class WireEnergy:
    """What wires cost if each cell that is no block stands where its wires pull it, as weights between springs do.

    For blocks at ``places``, the squares of the lengths of all wires are in sum, but for a constant,
    ``sum(places * (stiffness @ places)) + 2 * sum(places * pull)``. So blocks that only registers and logic connect
    are drawn to each other, wherever that logic is at first.

    Attributes
    ----------
    stiffness
        float64, (blocks, blocks), symmetric.
    pull
        float64, (blocks, 2): by everything that has a place.
    """

    def __init__(self, module: Mapping[str, Any], blocks: Sequence[str], fixed: Mapping[str, str]) -> None:
        """For a module of nextpnr's JSON file, the blocks to move, and the sites of other ones, which stay there."""
        cells = {name: cell for name, cell in module["cells"].items() if _site_of(cell)}
        number = {name: index for index, name in enumerate(cells)}
        places = np.array([position(fixed.get(name) or _site_of(cell)) for name, cell in cells.items()], float)
        wires = _wires(module, cells, number)
        laplacian = (diags_array(wires.sum(axis=1)) - wires).tocsr()
        moved = np.array([number[name] for name in blocks])
        still = [name in fixed or cell["type"] == _PINS for name, cell in cells.items()]
        held = np.flatnonzero(still)
        loose = np.setdiff1d(np.flatnonzero(~np.array(still)), moved)
        springs = laplacian[loose][:, loose] + diags_array(np.full(len(loose), _HOLD))
        to_blocks = laplacian[loose][:, moved]
        by_held = _HOLD * places[loose] - laplacian[loose][:, held] @ places[held]
        response = _solve(springs, -to_blocks.toarray())
        self.stiffness = laplacian[moved][:, moved].toarray() + to_blocks.T @ response
        self.stiffness = (self.stiffness + self.stiffness.T) / 2
        self.pull = to_blocks.T @ _solve(springs, by_held) + laplacian[moved][:, held] @ places[held]

    def slope(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much the sum grows with each coordinate of each block; places are (blocks, 2)."""
        return 2 * (self.stiffness @ places + self.pull)


def _site_of(cell: Mapping[str, Any]) -> str:
    site = cell["attributes"].get("NEXTPNR_BEL", "")
    return site if _SITE.match(site) else ""


def _wires(module: Mapping[str, Any], cells: Mapping[str, Any], number: Mapping[str, int]) -> Any:
    """The wires between each two cells; one from a driver to one of several readers counts as its share of the net."""
    driver: dict[int, int] = {}
    readers: defaultdict[int, set[int]] = defaultdict(set)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if "CLK" in port:
                continue
            for bit in bits:
                if cell["port_directions"][port] == "output":
                    driver[bit] = number[name]
                else:
                    readers[bit].add(number[name])
    # Constants have nets, too.
    constants = {bit for name, net in module["netnames"].items() if name.startswith("$PACKER_") for bit in net["bits"]}
    wires = [
        (driver[bit], reader, 1 / len(found))
        for bit, found in readers.items()
        if bit in driver and bit not in constants and len(found) <= _MANY
        for reader in found - {driver[bit]}
    ]
    ends = np.array(wires, float).reshape(-1, 3)
    one_way = coo_array((ends[:, 2], ends[:, :2].astype(int).T), shape=(len(cells), len(cells))).tocsr()
    return one_way + one_way.T


def _solve(matrix: Any, right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The solutions of a positive definite system for each column of the right side."""
    scale = diags_array(1 / matrix.diagonal())
    return np.stack([cg(matrix, column, rtol=1e-4, M=scale)[0] for column in right.T], axis=1)
