#!/usr/bin/env python3
"""Synthesize, place and route with open tools, and report frequency and resources.

    python -m scripts.synthesize --part LFE5U-85F --out-of-context --size 8

The AXI shell alone, its ports bound to no pins: the figures are those of the whole accelerator with its buses. Three
seeds of the placement; the report has the median.

Yosys and nextpnr come from PyPI (pip install 'openmxu[fpga]'). Every file stays in the output folder, and what has not
changed since is not made again. Exit status 1 when a tool fails, the design does not fit, or a check of the report
fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from openmxu.arch.config import PRESETS, Config
from scripts.fpga.critical_path import text_of
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import Implementation, implement, out_of_context
from scripts.fpga.parts import PARTS, find_part
from scripts.fpga.summary import summary

PART = "LFE5U-85F"
SEEDS = (1, 2, 3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the flow; the exit status."""
    options = _options(arguments)
    try:
        made = implement(
            out_of_context(_config(options), find_part(options.part)),
            _folder(options),
            seeds=options.seeds,
            frequency=options.frequency,
            say=lambda step: print(f"{step} …", file=sys.stderr, flush=True),
        )
    except (FlowError, ValueError, OSError) as error:
        print(f"synthesize: error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(made.report) if options.json else summary(made.report))
    if options.path and made.report["critical_path"]:
        print(text_of(made.report["critical_path"]), file=sys.stderr)
    errors = _errors(made, options)
    for error in errors:
        print(f"synthesize: error: {error}", file=sys.stderr)
    return 1 if errors else 0


def _config(options: argparse.Namespace) -> Config:
    config = Config.preset(options.preset) if options.preset else Config.for_size(options.size)
    return config if options.lanes is None else config.replace(activation_lanes=options.lanes)


def _folder(options: argparse.Namespace) -> Path:
    part = options.part.replace("/", "_")
    return options.output / f"{part}-{_config(options).fingerprint}"


def _errors(made: Implementation, options: argparse.Namespace) -> list[str]:
    report = made.report
    errors = list(report["errors"])
    if not report["fits"]:
        over = ", ".join(f"{name} {used} of {available}" for name, (used, available) in report["overflows"].items())
        errors.append(f"does not fit {report['part']}: {over or 'the placer finds no place'}")
    elif options.require is not None and report["fmax_mhz"] < options.require:
        errors.append(f"{report['fmax_mhz']} MHz is below {options.require} MHz")
    return errors


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.synthesize",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--part", default=PART, help=f"one of {', '.join(PARTS)} (default %(default)s)")
    parser.add_argument("--out-of-context", action="store_true", help="the AXI shell without pins (the default)")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--size", type=int, default=8, help="S of the default configuration (default %(default)s)")
    sizes.add_argument("--preset", choices=PRESETS, help="a named configuration instead")
    parser.add_argument("--lanes", type=int, help="activation lanes, if not the configuration's")
    parser.add_argument(
        "--seed", dest="seeds", type=int, action="append", help=f"of a placement, several times (default {SEEDS})"
    )
    parser.add_argument("--frequency", type=float, default=100.0, help="MHz to aim at (default %(default)g)")
    parser.add_argument("--require", type=float, metavar="MHZ", help="fail below this frequency")
    parser.add_argument("--output", type=Path, default=Path("build/synthesis"), help="folder (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print report.json on one line")
    parser.add_argument("--path", action="store_true", help="print the steps of the critical path")
    options = parser.parse_args(arguments)
    options.seeds = options.seeds or list(SEEDS)
    return options


if __name__ == "__main__":
    sys.exit(main())
