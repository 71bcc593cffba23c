"""Compare matrix products on the simulated RTL with SCALE-Sim 3.

    python -m scripts.peers
    python -m scripts.peers --size 8
    python -m scripts.peers --write

SCALE-Sim counts the cycles of the array, with memories that always answer; ours are all cycles of a program, from the
first instruction to the last byte written, with the requantization of every sum, and with buses of 8 bytes unless
``--bus-bytes`` says otherwise. Where ours takes more, the bound says whether any order could take less: it is what the
busiest part of the machine needs. SCALE-Sim takes a minute for half a million cycles. It needs an environment of its
own: pip install 'openmxu[peers]'. ``--write`` puts a table of all cycles into docs/performance.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openmxu.program_file import write_atomically
from scripts.docs.sections import with_section
from scripts.peers.scale_sim import cycles
from scripts.peers.table import Pair, Shape, table_of
from scripts.performance.measure import measure

SIZES = (8, 16, 32)
LATENCY = 4

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"

SHAPES: tuple[Shape, ...] = (
    # Those of docs/performance.md.
    (31, 31, 31),
    (17, 100, 33),
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (8, 784, 128),
    (256, 32, 256),
    (1000, 16, 16),
    # Dense layers: one row, and batches of 64 and 128.
    (1, 512, 512),
    (64, 784, 128),
    (128, 256, 256),
    # Transformers: scores of 128 tokens, and projections of 197.
    (128, 64, 128),
    (197, 192, 192),
    # 1 × 1 convolutions of MobileNetV2.
    (49, 960, 160),
    (196, 384, 64),
    (784, 144, 24),
    # 3 × 3 convolutions of a ResNet, as products.
    (784, 576, 64),
    (196, 1152, 128),
    (49, 2304, 256),
    (49, 1152, 512),
)
"""M, K, N."""


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="only this size of the array")
    parser.add_argument("--bus-bytes", type=int, default=8, help="width of both memory buses; 8 without it")
    parser.add_argument("--write", action="store_true", help=f"put a table into {DOCUMENT.name}")
    arguments = parser.parse_args()
    if arguments.write and (arguments.size or arguments.bus_bytes != 8):
        parser.error("--write needs all sizes, with buses of 8 bytes")
    sizes = arguments.size or SIZES
    buses = {"host_data_bytes": arguments.bus_bytes, "weight_data_bytes": arguments.bus_bytes}
    mismatches = 0
    found: dict[Shape, dict[int, Pair]] = {shape: {} for shape in SHAPES}
    for size in sizes:
        not_slower = out_of_reach = 0
        for shape, theirs in zip(SHAPES, cycles(size, SHAPES), strict=True):
            ours = measure(f"gemm {' '.join(map(str, shape))}", size, LATENCY, **buses)
            found[shape][size] = Pair(theirs, ours.cycles, ours.bound)
            mismatches += ours.mismatches
            not_slower += ours.cycles <= theirs
            out_of_reach += ours.bound > theirs
            name = " × ".join(map(str, shape))
            ratio = theirs / ours.cycles
            print(
                f"S = {size:2}  {name:16} {theirs:9,} cycles in SCALE-Sim, {ours.cycles:9,} here, bound "
                f"{ours.bound:9,} ({ours.bound_by}), {ratio:.2f}",
                flush=True,
            )
        print(
            f"S = {size}: not slower on {not_slower} of {len(SHAPES)}; on {out_of_reach} of the others the bound "
            f"alone is more than SCALE-Sim's cycles; {mismatches} mismatches",
            flush=True,
        )
    if arguments.write and not mismatches:
        write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), "peers", table_of(found)).encode())
    return int(mismatches > 0)


if __name__ == "__main__":
    sys.exit(main())
