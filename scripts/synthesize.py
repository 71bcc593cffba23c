#!/usr/bin/env python3
"""Synthesize, place and route with open tools, and report frequency and resources.

    python scripts/synthesize.py --part LFE5U-85F --out-of-context --size 8
    python scripts/synthesize.py --board ulx3s_85f
    python scripts/synthesize.py --toolchain vivado --part xc7a100tcsg324-1

The first places the AXI shell alone, its ports bound to no pins: the figures are those of the whole accelerator with
its buses. The placement uses three seeds; the report has their median. The second writes a bitstream with the serial
shell. The third writes a project for a vendor's tool, which is not run.

Yosys and nextpnr come from PyPI (pip install 'openmxu[fpga]'). Every file stays in the output folder, and files that
are up to date are not made again. Exit status 1 when a tool fails, the design does not fit, or a check of the report
fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from openmxu.arch.config import PRESETS, Config
from openmxu.arch.profile import PROFILES
from openmxu.rtl.boards import BOARDS
from scripts.fpga.boards import find_board, make_bitstream, on_board
from scripts.fpga.critical_path import text_of
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import OUT_OF_CONTEXT_MHZ, Implementation, implement, out_of_context
from scripts.fpga.parts import PARTS, find_part
from scripts.fpga.report import summary
from scripts.fpga.sweep.rows import SEEDS
from scripts.fpga.vendor import TOOLCHAINS, VIVADO, board_project, vivado_project

PART = "LFE5U-85F"
DEFAULT_SIZE = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the flow; returns the exit status."""
    options = _options(arguments)
    try:
        return _write_project(options) if options.toolchain else _run(options)
    except (FlowError, ValueError, OSError) as error:
        print(f"synthesize: error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    board = find_board(options.board) if options.board else None
    if board is None:
        config = _config(options, Config.for_size(DEFAULT_SIZE))
        source, clock = out_of_context(config, find_part(options.part)), None
        frequency = options.frequency or OUT_OF_CONTEXT_MHZ
    else:
        config = _config(options, board.config)
        source, clock = on_board(board, config, options.frequency or board.frequency, options.baud or board.baud)
        frequency = clock
    place = options.board or options.part.replace("/", "_")
    made = implement(
        source,
        options.output / f"{place}-{config.fingerprint}",
        seeds=options.seeds or SEEDS,
        frequency=frequency,
        say=lambda step: print(f"{step} …", file=sys.stderr, flush=True),
    )
    print(json.dumps(made.report) if options.json else summary(made.report))
    if options.path and made.report["critical_path"]:
        print(text_of(made.report["critical_path"]), file=sys.stderr)
    errors = _errors(made, options.require)
    for error in errors:
        print(f"synthesize: error: {error}", file=sys.stderr)
    if clock is not None and not errors:
        print(f"{make_bitstream(made, source.part, clock)}: {clock:g} MHz", file=sys.stderr)
    return 1 if errors else 0


def _write_project(options: argparse.Namespace) -> int:
    """Write a project for a vendor's tool."""
    if (options.toolchain == VIVADO) == bool(options.board):
        raise FlowError("--toolchain vivado needs --part, the others need --board")
    if options.board:
        board = find_board(options.board)
        config = _config(options, board.config)
        frequency, baud = options.frequency or board.frequency, options.baud or board.baud
        folder = options.output / f"{options.toolchain}-{board.name}-{config.fingerprint}"
        script = board_project(board, config, frequency, baud, options.toolchain, folder)
    else:
        config = _config(options, Config.for_size(DEFAULT_SIZE))
        folder = options.output / f"{options.toolchain}-{options.part}-{config.fingerprint}"
        script = vivado_project(config, options.part, options.frequency or OUT_OF_CONTEXT_MHZ, folder)
    print(f"{script}: written, not run")
    return 0


def _config(options: argparse.Namespace, default: Config) -> Config:
    config = default
    if options.preset:
        config = Config.preset(options.preset)
    elif options.size:
        config = Config.for_size(options.size)
    changes = {"activation_lanes": options.lanes, "profile": options.profile}
    return config.replace(**{name: value for name, value in changes.items() if value is not None})


def _errors(made: Implementation, require: float | None) -> list[str]:
    report = made.report
    errors = list(report["errors"])
    if not report["fits"]:
        over = ", ".join(f"{name} {used} of {available}" for name, (used, available) in report["overflows"].items())
        errors.append(f"does not fit {report['part']}: {over or 'the placer finds no place'}")
    elif require is not None and report["fmax_mhz"] < require:
        errors.append(f"{report['fmax_mhz']} MHz is below {require} MHz")
    return errors


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--board", choices=BOARDS, help="write a bitstream for it")
    where.add_argument("--part", default=PART, help=f"one of {', '.join(PARTS)} (default %(default)s)")
    parser.add_argument("--out-of-context", action="store_true", help="without pins: what --part means")
    parser.add_argument("--toolchain", choices=TOOLCHAINS, help="write a project for this vendor's tool")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--size", type=int, help=f"S of default sizes (default {DEFAULT_SIZE}, or the board's)")
    sizes.add_argument("--preset", choices=PRESETS, help="a named configuration instead")
    parser.add_argument("--lanes", type=int, help="activation lanes, if not the configuration's")
    parser.add_argument("--profile", choices=[p.name for p in PROFILES], help="profile, if not the configuration's")
    parser.add_argument(
        "--seed", dest="seeds", type=int, action="append", help=f"of a placement, several times (default {SEEDS})"
    )
    parser.add_argument(
        "--frequency",
        type=float,
        metavar="MHZ",
        help=f"to aim at (default {OUT_OF_CONTEXT_MHZ:g}), or of a board's clock (default the board's)",
    )
    parser.add_argument("--baud", type=int, help="of a board's serial port (default the board's)")
    parser.add_argument("--require", type=float, metavar="MHZ", help="fail below this frequency")
    parser.add_argument("--output", type=Path, default=Path("build/synthesis"), help="folder (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print report.json on one line")
    parser.add_argument("--path", action="store_true", help="print the steps of the critical path")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
