"""Print what more or less of a resource costs: the AXI shell synthesized for an ECP5, with one parameter changed.

    python -m scripts.fpga.prices               # S = 8, as docs/fpga.md has it: half an hour
    python -m scripts.fpga.prices --size 16 --parameter activation_lanes
    python -m scripts.fpga.prices --write       # rewrite the table of docs/fpga.md

Of each parameter in docs/performance.md's tables of resources the values next to the default, and the profile full. The
netlists are those of scripts/synthesize.py --out-of-context, before placing. Exit status 1 when a tool fails.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.program_file import write_atomically
from scripts.docs.sections import with_section
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import out_of_context
from scripts.fpga.parts import Part, find_part
from scripts.fpga.prices.table import Price, line, table
from scripts.fpga.sweep.table import DOCUMENT
from scripts.fpga.yosys import synthesize
from scripts.performance.resources import RESOURCES, SIZES

SECTION = "prices"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the table; returns the exit status."""
    options = _options(arguments)
    default = Config.for_size(options.size)
    try:
        part = find_part(options.part)
        changes = [("", ""), *_changes(default, options.parameter or [*RESOURCES, "profile"])]
        configs = [default.replace(**{name: value}) if name else default for name, value in changes]
        prices = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each thread waits for a process
            found = pool.map(functools.partial(_price, part), configs)
            for (name, value), price in zip(changes, found, strict=True):
                prices.append((name, value, price))
                print(line(name, value, price, prices[0][2]), flush=True)
        if options.write:
            text = table(prices)
            write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), SECTION, text).encode())
    except (FlowError, ValueError, OSError) as error:
        print(f"prices: error: {error}", file=sys.stderr)
        return 1
    return 0


def _changes(default: Config, names: Sequence[str]) -> Iterator[tuple[str, int | str]]:
    """Parameters with the values next to that of the default."""
    for name in names:
        if name == "profile":
            yield name, "full"
            continue
        values = RESOURCES[name]
        place = values.index(getattr(default, name))
        for value in (*values[max(place - 1, 0) : place], *values[place + 1 : place + 2]):
            yield name, value


def _price(part: Part, config: Config) -> Price:
    source = out_of_context(config, part)
    with tempfile.TemporaryDirectory() as folder:
        netlist = synthesize(source.verilog, source.top, part.family, Path(folder), part.array_sites)
    return Price.of(netlist.types)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8, choices=SIZES, help="S (default %(default)s)")
    parser.add_argument("--part", default="LFE5U-85F", help="an ECP5 (default %(default)s)")
    parser.add_argument("--parameter", action="append", choices=[*RESOURCES, "profile"], help="only this one")
    parser.add_argument("--write", action="store_true", help=f"write the table of {DOCUMENT.name} anew")
    options = parser.parse_args(arguments)
    if options.write and (options.parameter or options.size != 8):
        parser.error("--write needs all parameters at S = 8")
    return options


if __name__ == "__main__":
    sys.exit(main())
