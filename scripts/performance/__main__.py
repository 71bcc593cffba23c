"""Measure matrix products and networks on the simulated RTL against their roofline.

    python -m scripts.performance
    python -m scripts.performance --size 8 --latency 4 --case "gemm 31 31 31"
    python -m scripts.performance --write

The bound of a program is that of openmxu/reporting.py: the cycles for which array, weight path, host port or activation
unit are busy, whichever is busiest. ``--write`` puts the table into docs/performance.md and draws performance.svg
beside it. Configurations are the default ones of each size; the first run of a size builds it. Exit status 1 when a
result is not the numpy model's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openmxu.program_file import write_atomically
from scripts.docs.sections import with_section
from scripts.performance.measure import Measured, cases, measure

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
PICTURE = DOCUMENT.with_suffix(".svg")


def table(found: list[Measured]) -> str:
    """All of them in Markdown."""
    heads = ("what", "S", "latency", "cycles", "bound", "bound by", "bound ÷ cycles", "utilization")
    lines = [heads, ("---", *["---:"] * 4, "---", "---:", "---:"), *(item.cells for item in found)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="only this size of the array")
    parser.add_argument("--latency", type=int, action="append", help="only this latency of the memories in cycles")
    parser.add_argument("--case", action="append", help="only this case, as it is named in the output")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name} and draw it")
    arguments = parser.parse_args()
    wanted = [
        (name, size, latency)
        for name, size, latency in cases()
        if name in (arguments.case or [name])
        and size in (arguments.size or [size])
        and latency in (arguments.latency or [latency])
    ]
    if not wanted:
        parser.error("no case is of this kind")
    if arguments.write and len(wanted) < len(list(cases())):
        parser.error("--write needs all cases")
    found = []
    for case in wanted:
        item = measure(*case)
        found.append(item)
        print(
            f"S = {item.size:2}  latency {item.latency:3}  {item.name:20} {item.cycles:10,} cycles, bound "
            f"{item.bound:10,} ({item.bound_by}), {item.ratio:.3f}; utilization {item.utilization:.3f}; "
            f"{item.mismatches} mismatches",
            flush=True,
        )
    if arguments.write:
        from scripts.performance.plot import picture  # matplotlib takes a while to load

        write_atomically(PICTURE, picture(found))
        write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), "measured", table(found)).encode())
    return int(any(item.mismatches for item in found))


if __name__ == "__main__":
    sys.exit(main())
