"""The table of docs/performance.md that compares matrix products with SCALE-Sim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Pair", "Shape", "table_of"]

Shape = tuple[int, int, int]
"""M, K and N of a product."""


class Pair(NamedTuple):
    """A product on arrays of one size: cycles in SCALE-Sim, cycles on the RTL, and the bound of these."""

    peer: int
    cycles: int
    bound: int


def table_of(products: Mapping[Shape, Mapping[int, Pair]]) -> str:
    """A line for each product, with its pairs by the size of the array; cycles in bold where SCALE-Sim takes fewer."""
    sizes = list(next(iter(products.values())))
    header = "".join(f" S = {size}: SCALE-Sim | openmxu | bound |" for size in sizes)
    lines = [f"| M × K × N |{header}", f"| --- |{' ---: |' * 3 * len(sizes)}"]
    for shape, pairs in products.items():
        cells = [" × ".join(map(str, shape))]
        for pair in pairs.values():
            bold = "**" if pair.cycles > pair.peer else ""
            cells += [f"{pair.peer:,}", f"{bold}{pair.cycles:,}{bold}", f"{pair.bound:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in ("", *lines, ""))
