"""Write docs/array.svg, a small product on the array, from a simulation of the RTL; with --check only compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from openmxu.profiling.array_animation import array_animation
from openmxu.sim.array_recording import ArrayRecording, record_product

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "docs" / "array.svg"

# The second half of the sum over k needs a second tile, which comes while the first one is in use.
SIZE, ROWS, INNER, COLUMNS = 4, 6, 8, 4

LARGEST = 9


def recording() -> ArrayRecording:
    """The product of the picture."""
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-LARGEST, LARGEST + 1, shape) for shape in ((ROWS, INNER), (INNER, COLUMNS)))
    return record_product(left, right, SIZE)


def main() -> int:
    """Write or check the picture; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the picture is stale")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="the picture (default: docs/array.svg)")
    arguments = parser.parse_args()
    text = array_animation(recording())
    if arguments.check:
        if arguments.output.exists() and arguments.output.read_text(encoding="utf-8") == text:
            return 0
        print(f"{arguments.output} is stale; run: python -m scripts.docs.array_picture", file=sys.stderr)
        return 1
    arguments.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
