"""Keeps multiplier blocks that share factors near each other.

The four products of a scaler have two registers for each of their factors. With its blocks all over the part, the wires
from a register to two of them take most of the cycle, wherever the register is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["assign_places", "groups_of"]

_FACTOR = re.compile(r"[AB]\d+")
"""Inputs of MULT18X18D."""

_PULL = 100
"""Wires, about, by which each block is drawn to the middle of its group: many more than it has to logic, which can
follow it."""

_ROUNDS = 30
"""Far more than it takes until nothing changes."""


def groups_of(cells: Mapping[str, Any], blocks: Sequence[str]) -> list[list[int]]:
    """The indices of those blocks that share factors with others, for each such group of them."""
    group = list(range(len(blocks)))
    first: dict[int, int] = {}
    for index, block in enumerate(blocks):
        factors = (bits for port, bits in cells[block]["connections"].items() if _FACTOR.fullmatch(port))
        for bit in (bit for bits in factors for bit in bits if isinstance(bit, int)):  # constants are strings
            kept, merged = group[first.setdefault(bit, index)], group[index]
            group = [kept if own == merged else own for own in group]
    members = ([index for index, own in enumerate(group) if own == number] for number in sorted(set(group)))
    return [found for found in members if len(found) > 1]


def assign_places(
    costs: NDArray[np.float64], places: NDArray[np.int64], groups: Sequence[Sequence[int]]
) -> NDArray[np.int64]:
    """The index of a place for each block, such that the costs are small and groups close together.

    Each round draws blocks to the middle of their group in the round before, as in k-means with groups of given sizes.

    Parameters
    ----------
    costs
        (blocks, places): of each block at each place, without its group.
    places
        (places, 2): coordinates.
    groups
        Indices of blocks.
    """
    _, chosen = linear_sum_assignment(costs)
    for _ in range(_ROUNDS):
        pulled = costs.copy()
        for members in groups:
            middle = places[chosen[members]].mean(axis=0)
            pulled[members] += _PULL * np.abs(places - middle).sum(axis=1) ** 2
        before, (_, chosen) = chosen, linear_sum_assignment(pulled)
        if np.array_equal(chosen, before):
            break
    return chosen
