"""Utilization of N × N × N products over N and the size of the array, by the cycle model.

    python -m scripts.tpu_v1.utilization
    python -m scripts.tpu_v1.utilization --write

The machine is the preset ``tpu_v1`` with another array: buses as wide as a row, up to 64 bytes, and a beat in every
cycle. Products of more than 40,000 passes of a tile are left out, because their programs take minutes to compile and
to predict. ``--write`` puts the table into docs/tpu_v1.md and draws tpu_v1_utilization.svg beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import openmxu
from openmxu.compiler import compile_network, gemm_network
from openmxu.program_file import write_atomically
from openmxu.sim.cycle_model import predict
from scripts.tpu_v1.document import DOCUMENT, markdown, write_section

__all__ = ["LENGTHS", "SIZES", "passes", "sized", "utilization"]

SIZES = (8, 16, 32, 64, 128, 256)
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
MOST_PASSES = 40_000

PICTURE = DOCUMENT.with_name("tpu_v1_utilization.svg")


def sized(size: int) -> openmxu.Config:
    """The preset with an array of ``size`` × ``size``."""
    bus = min(64, size)
    return openmxu.Config.preset("tpu_v1", size=size, activation_lanes=size, host_data_bytes=bus, weight_data_bytes=bus)


def passes(length: int, config: openmxu.Config) -> int:
    """Instructions of the array for a product: each tile times as many rows as half of the accumulators hold."""
    tiles = -(-length // config.size)
    return tiles**2 * -(-length // (config.accumulator_rows // 2))


def utilization(length: int, config: openmxu.Config) -> float:
    """Useful multiply-adds ÷ (S² × cycles) of a length × length × length product."""
    program = compile_network(gemm_network(length, length, length), config, effort=0)
    return length**3 / (config.tile_bytes * predict(program.instructions, config).cycles)


def table(found: Mapping[tuple[int, int], float]) -> str:
    """In Markdown: a row for each size of the array, a column for each length; nothing where it was left out."""
    lines = [("S", *(f"{length}³" for length in LENGTHS)), ["---:"] * (1 + len(LENGTHS))]
    for size in SIZES:
        numbers = [found.get((size, length)) for length in LENGTHS]
        lines.append((str(size), *("" if number is None else f"{number:.3f}" for number in numbers)))
    return markdown(lines)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name} and draw it")
    arguments = parser.parse_args()
    found = {}
    for size in SIZES:
        config = sized(size)
        for length in LENGTHS:
            if passes(length, config) > MOST_PASSES:
                continue
            found[size, length] = utilization(length, config)
            print(f"S = {size:3}  {length:4}³  {found[size, length]:.3f}", flush=True)
    if arguments.write:
        from scripts.tpu_v1.plot import utilization_picture  # matplotlib takes a while to load

        write_atomically(PICTURE, utilization_picture(found))
        write_section("utilization", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
