"""Write the bitstream of the LiteX system for a board, its DRAM as memory of processor and core.

    python -m scripts.litex.boards ulx3s
    python -m scripts.litex.boards ecpix5 --frequency 80 --seed 3

Yosys and nextpnr come from PyPI (pip install 'openmxu[litex,fpga]'). Every file stays in the output folder, and files
that are up to date are not made again. Exit status 1 when a tool fails or a clock is too slow, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.fpga.errors import FlowError
from scripts.fpga.report import summary
from scripts.fpga.sweep.rows import SEEDS
from scripts.litex.boards import BOARDS
from scripts.litex.boards.flow import board_config, board_source, implement_board, synthesize_board, write_bitstream
from scripts.litex.firmware import FirmwareError

_FREQUENCIES = (20, 150)
"""MHz for which the PLL and LiteDRAM's timings have values; no placement reaches the highest."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the flow; returns the exit status."""
    options = _options(arguments)
    logging.disable(logging.INFO)  # LiteX describes what it builds in some hundred lines
    board = BOARDS[options.board]
    low, high = _FREQUENCIES
    if options.frequency is not None and not low <= options.frequency <= high:
        print(f"litex: error: --frequency must be from {low} to {high} MHz, not {options.frequency:g}", file=sys.stderr)
        return 2
    folder = options.output or Path("build/litex") / board.name
    frequency = options.frequency or board.frequency
    try:
        source = board_source(board, board_config(board, options.size), frequency, folder)
        if options.synthesize:
            for kind, count in sorted(synthesize_board(source, folder, _say).types.items()):
                print(f"{kind:12} {count:>7,}")
            return 0
        made = implement_board(source, folder, options.seeds or SEEDS, frequency, _say)
        print(summary(made.report))
        print(f"{write_bitstream(board, made, frequency)}: {frequency:g} MHz")
    except (FlowError, FirmwareError, ValueError, OSError) as error:
        print(f"litex: error: {error}", file=sys.stderr)
        return 1
    return 0


def _say(step: str) -> None:
    print(f"{step} …", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.litex.boards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("board", choices=BOARDS)
    parser.add_argument("--size", type=int, default=8, help="of the array; default: %(default)s")
    parser.add_argument("--frequency", type=float, metavar="MHZ", help="of the system; default: the board's")
    parser.add_argument(
        "--seed", dest="seeds", type=int, action="append", help=f"of a placement, several times; default: {SEEDS}"
    )
    parser.add_argument("--synthesize", action="store_true", help="the netlist only, and its cells")
    parser.add_argument("--output", type=Path, help="folder; default: build/litex/BOARD")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
