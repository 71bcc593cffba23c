"""N × N × N products: the preset ``tpu_v1`` at 700 MHz by the cycle model, beside numpy on this CPU.

    python -m scripts.tpu_v1.square
    python -m scripts.tpu_v1.square --write

The machine has the memories of the TPU paper, and its time is from the first instruction to the last byte written.
numpy multiplies int8 by int8, which wraps around, and float32 by float32, which its BLAS does on all cores; of several
runs the fastest counts. Of a product of int8 that is expected to take more than a minute, numpy computes a part of the
rows, each of which takes as long as any other, and the time of all is in proportion. ``--write`` puts the table into
docs/tpu_v1.md and draws tpu_v1_square.svg beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import openmxu
from openmxu.compiler import compile_network, gemm_network
from openmxu.program_file import write_atomically
from openmxu.sim.cycle_model import predict
from scripts.tpu_v1.document import DOCUMENT, markdown, write_section
from scripts.tpu_v1.paper import CLOCK, HOST_RATE, WEIGHT_RATE

__all__ = ["LENGTHS", "Product", "machine_seconds"]

LENGTHS = (256, 512, 1024, 2048, 4096)

_SECONDS = 1.0
_MOST_SECONDS = 60.0

PICTURE = DOCUMENT.with_name("tpu_v1_square.svg")


@dataclass(frozen=True)
class Product:
    """Seconds of a length × length × length product.

    Attributes
    ----------
    machine
        Of the preset, by the cycle model.
    int8, float32
        Of numpy.
    int8_rows
        The rows that numpy computed of int8; ``int8`` are the seconds of all.
    """

    length: int
    machine: float
    int8: float
    int8_rows: int
    float32: float

    @property
    def rates(self) -> Mapping[str, float]:
        """Operations per second, two for each multiply-add."""
        seconds = {"tpu_v1": self.machine, "numpy int8": self.int8, "numpy float32": self.float32}
        return {name: 2 * self.length**3 / value for name, value in seconds.items()}


def machine_seconds(length: int) -> float:
    """Seconds that the machine takes for a product."""
    config = openmxu.Config.preset("tpu_v1")
    program = compile_network(gemm_network(length, length, length), config, effort=0)
    return predict(program.instructions, config, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE).cycles / CLOCK


def numpy_seconds(length: int, dtype: type[np.generic], rows: int) -> float:
    """Seconds that numpy takes for so many rows of a product, in the fastest of the runs that a second has time for."""
    random = np.random.default_rng(length)
    one, other = (random.integers(-128, 128, (height, length)).astype(dtype) for height in (rows, length))
    runs: list[float] = []
    while sum(runs) < _SECONDS:
        begin = time.perf_counter()
        one @ other
        runs.append(time.perf_counter() - begin)
    return min(runs)


def products() -> list[Product]:
    """All lengths."""
    found: list[Product] = []
    for length in LENGTHS:
        # Eight times as many multiplications as the one before, with operands that fit the caches less.
        expected, rows = 10 * found[-1].int8 if found else 0.0, length
        while expected * rows / length > _MOST_SECONDS:
            rows //= 2
        found.append(
            Product(
                length=length,
                machine=machine_seconds(length),
                int8=numpy_seconds(length, np.int8, rows) * length / rows,
                int8_rows=rows,
                float32=numpy_seconds(length, np.float32, length),
            )
        )
        print(found[-1], flush=True)
    return found


def table(found: Sequence[Product]) -> str:
    """In Markdown: milliseconds, and 10**12 operations per second."""
    heads = ["N", "tpu_v1, ms", "TeraOps/s", "numpy int8, ms", "TeraOps/s", "rows computed"]
    heads += ["numpy float32, ms", "TeraOps/s"]
    lines = [heads, ["---:"] * len(heads)]
    for item in found:
        machine, int8, float32 = (
            (f"{1e3 * seconds:,.3f}", f"{item.rates[name] / 1e12:.4f}")
            for name, seconds in (("tpu_v1", item.machine), ("numpy int8", item.int8), ("numpy float32", item.float32))
        )
        lines.append([f"{item.length:,}", *machine, *int8, f"{item.int8_rows:,}", *float32])
    return markdown(lines)


def processor() -> str:
    """The name of this CPU and the number of its cores in use."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else 'CPU'}, {len(os.sched_getaffinity(0))} cores"


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name} and draw it")
    arguments = parser.parse_args()
    found = products()
    text = f"numpy {np.__version__} on: {processor()}\n\n{table(found)}"
    print(text, end="")
    if arguments.write:
        from scripts.tpu_v1.plot import square_picture  # matplotlib takes a while to load

        write_atomically(PICTURE, square_picture(found))
        write_section("square", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
