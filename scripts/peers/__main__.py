"""Compare matrix products on the simulated RTL with SCALE-Sim 3.

    python -m scripts.peers
    python -m scripts.peers --size 8 --write

SCALE-Sim counts the cycles of the array, with memories that always answer; ours are all cycles of a program, from the
first instruction to the last byte written, with buses of 8 bytes and the requantization of every sum. ``--write`` puts
the table into docs/performance.md. It needs an environment with SCALE-Sim: pip install 'openmxu[peers]'.
"""

from __future__ import annotations

import argparse
import sys

from openmxu.program_file import write_atomically
from scripts.docs.sections import with_section
from scripts.peers.scale_sim import Shape, cycles
from scripts.performance.document import DOCUMENT
from scripts.performance.measure import measure

SIZES = (8, 16, 32)
LATENCY = 4

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
    # 3 × 3 convolutions of ResNet-18, as products.
    (3136, 576, 64),
    (784, 1152, 128),
    (196, 2304, 256),
    (49, 4608, 512),
)
"""M, K, N."""


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="only this size of the array")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    arguments = parser.parse_args()
    sizes = arguments.size or SIZES
    if arguments.write and arguments.size:
        parser.error("--write needs all sizes")
    lines = [
        "| M × K × N | S | SCALE-Sim | openmxu | SCALE-Sim ÷ openmxu | bound by |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    mismatches = 0
    for size in sizes:
        not_slower = 0
        for shape, theirs in zip(SHAPES, cycles(size, SHAPES), strict=True):
            ours = measure(f"gemm {' '.join(map(str, shape))}", size, LATENCY)
            mismatches += ours.mismatches
            not_slower += ours.cycles <= theirs
            name = " × ".join(map(str, shape))
            line = f"| {name} | {size} | {theirs:,} | {ours.cycles:,} | {theirs / ours.cycles:.2f} | {ours.limit} |"
            print(line, flush=True)
            lines.append(line)
        print(f"S = {size}: not slower on {not_slower} of {len(SHAPES)}, {mismatches} mismatches", flush=True)
    if arguments.write:
        text = "".join(f"{line}\n" for line in lines)
        write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), "peers", text).encode())
    return int(mismatches > 0)


if __name__ == "__main__":
    sys.exit(main())
