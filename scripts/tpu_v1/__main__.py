"""The TPU paper's Table 3 on networks of the same sizes: ours, by the cycle model, beside the paper's.

    python -m scripts.tpu_v1
    python -m scripts.tpu_v1 --workload CNN0 --workload MLP1
    python -m scripts.tpu_v1 --write

``--write`` puts the table of all six into docs/tpu_v1.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from examples.tpu_v1.workloads import WORKLOADS
from scripts.tpu_v1.arguments import read_arguments
from scripts.tpu_v1.document import markdown, write_section
from scripts.tpu_v1.measure import Measured, measure
from scripts.tpu_v1.paper import ROWS, TABLE_3


def table(found: Sequence[Measured]) -> str:
    """Ours and the paper's in Markdown, a column for each workload."""
    lines = [("row", "", *(item.name for item in found)), ("---", "---", *["---:"] * len(found))]
    for number, row in enumerate(ROWS):
        unit = "" if row == "TeraOps/s" else " %"
        lines.append((f"{number + 1} {row}", "ours", *(f"**{item.rows[number]:.1f}{unit}**" for item in found)))
        lines.append(("", "paper", *(f"{TABLE_3[item.name][number]:.1f}{unit}" for item in found)))
    lines.append(("roofline share", "ours", *(f"**{item.share:.3f}**" for item in found)))
    lines.append(("cycles", "ours", *(f"{item.cycles:,}" for item in found)))
    lines.append(("instructions", "ours", *(f"{item.instructions:,}" for item in found)))
    return markdown(lines)


def main() -> int:
    """The exit status."""
    arguments = read_arguments(__doc__)
    found = []
    for name in arguments.workloads:
        begin = time.monotonic()
        item = measure(name, WORKLOADS[name]())
        found.append(item)
        numbers = ", ".join(f"{row} {value:.1f}" for row, value in zip(ROWS, item.rows, strict=True))
        print(f"{name}: {item.cycles:,} cycles; {numbers}; roofline share {item.share:.3f}", flush=True)
        print(f"    {time.monotonic() - begin:.0f} s", flush=True)
    print(table(found), end="")
    if arguments.write:
        write_section("measured", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
