"""Exchanges the places of blocks until the squares of the lengths of wires are least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scripts.fpga.ecp5.wire_energy import WireEnergy, position

__all__ = ["exchanged"]


def exchanged(energy: WireEnergy, sites: Sequence[str], free: Sequence[str]) -> list[str]:
    """The sites of blocks after the exchanges that save most, one after the other, until none saves anything.

    Parameters
    ----------
    energy
        Of these blocks.
    sites
        The site of each block.
    free
        Sites that may be taken as well.
    """
    names = [*sites, *free]
    places = np.array([position(name) for name in names], float)
    count = len(sites)
    taken = np.arange(count)
    rest = list(range(count, len(names)))
    own = np.diag(energy.stiffness)
    while True:
        at = places[taken]
        slope = energy.slope(at)
        # Of two blocks with each other, and of each block with a free site.
        way = at[None] - at[:, None]
        swap = _along(slope, way) + _along(slope, way).T
        swap += (way**2).sum(axis=2) * (own[:, None] + own - 2 * energy.stiffness)
        way = places[rest][None] - at[:, None]
        move = _along(slope, way) + (way**2).sum(axis=2) * own[:, None]
        change = np.concatenate([swap, move], axis=1)
        block, other = divmod(int(change.argmin()), change.shape[1])
        if change[block, other] > -1e-6:
            return [names[place] for place in taken]
        if other < count:
            taken[[block, other]] = taken[[other, block]]
        else:
            taken[block], rest[other - count] = rest[other - count], int(taken[block])


def _along(slope: NDArray[np.float64], way: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.einsum("ik,ijk->ij", slope, way)
