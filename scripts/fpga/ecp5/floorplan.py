"""Places for the multiplier blocks of an array that needs most of the part's blocks.

A placer that places blocks one after the other puts the last ones far from their elements, at the end of wires as long
as the part. If blocks are placed in the order of the array, the rest of each element is placed around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["Sites", "fix_array"]

Sites = Sequence[Sequence[str]]
"""Names of places from left to right, for each row of them."""

_ELEMENT = re.compile(r"array\.row_(\d+)\.element_(\d+)\.multiplier\.block$")


def fix_array(netlist: dict[str, Any], top: str, places: Sites) -> int:
    """Assign the blocks of the array places in a netlist of Yosys, if they need more than half of the places.

    Rows of the array lie along the part's rows of blocks, and its columns from left to right.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The flattened module.
    places
        Places for blocks; empty if any place will do.

    Returns
    -------
    int
        Number of blocks with a place.
    """
    elements = {}
    for name, cell in netlist["modules"][top]["cells"].items():
        if found := _ELEMENT.search(name):
            elements[int(found[1]), int(found[2])] = cell
    if not places or 2 * len(elements) <= sum(map(len, places)):
        return 0
    in_order = sorted(elements)
    for index, sites in enumerate(places):
        chunk = in_order[len(in_order) * index // len(places) : len(in_order) * (index + 1) // len(places)]
        chunk.sort(key=lambda element: element[::-1])
        for number, element in enumerate(chunk):
            elements[element]["attributes"]["BEL"] = sites[number * len(sites) // len(chunk)]
    return len(elements)
