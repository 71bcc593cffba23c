#!/usr/bin/env python3
"""Print the logic of each unit: the AXI shell synthesized for an ECP5, cell by cell.

    python scripts/area.py                        # S = 8, as docs/fpga.md has it
    python scripts/area.py --size 16 --depth 5
    python scripts/area.py --write                # rewrite the table of docs/fpga.md

The netlist is that of scripts/synthesize.py --out-of-context, before placing. Exit status 1 when a tool fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from openmxu.arch.config import Config
from scripts.docs.sections import with_section
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import out_of_context
from scripts.fpga.parts import find_part
from scripts.fpga.sweep.table import DOCUMENT
from scripts.fpga.units import table
from scripts.fpga.yosys import synthesize

SECTION = "units"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the table; returns the exit status."""
    options = _options(arguments)
    try:
        config = Config.for_size(options.size)
        source = out_of_context(config, find_part(options.part))
        folder = options.output / f"{options.part}-{config.fingerprint}"
        netlist = synthesize(source.verilog, source.top, source.part.family, folder, source.part.array_sites)
        module = json.loads((folder / netlist.json).read_text())["modules"][source.top]
        text = table(module, netlist.modules, options.depth)
        print(text, end="")
        if options.write:
            DOCUMENT.write_text(with_section(DOCUMENT.read_text(), SECTION, text))
    except (FlowError, ValueError, OSError) as error:
        print(f"area: error: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8, help="S (default %(default)s)")
    parser.add_argument("--part", default="LFE5U-85F", help="an ECP5 (default %(default)s)")
    parser.add_argument("--depth", type=int, default=5, help="levels of units within units (default %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"write the table of {DOCUMENT.name} anew")
    parser.add_argument("--output", type=Path, default=Path("build/synthesis"), help="folder (default %(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
