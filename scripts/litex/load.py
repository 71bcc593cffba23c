"""Run a network on a board with the LiteX system: write program, weights and images to its DRAM, read the classes.

    python -m scripts.litex.load model.onnx --images x.npy --board ulx3s --port /dev/ttyUSB0
    python -m scripts.litex.load model.mxu --images x.npy --board ecpix5 --simulate --output y.npy

MODEL is a quantized model, or a program compiled for the board's core. The class of each image is printed on a line;
--output has the network's outputs. --simulate builds the system around LiteDRAM's model of the board's kind of memory
and loads that. Exit status 1 when board or firmware fail, 2 for wrong input.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.cli.configuration import DEFAULTS
from openmxu.cli.errors import InputError
from openmxu.cli.files import array_bytes, check_writable, read_arrays, write_output
from openmxu.cli.programs import load_program, naming_inputs
from openmxu.driver.serial_link import PortError
from openmxu.driver.serial_transport import open_port
from openmxu.program import Program
from scripts.litex.boards import BOARDS, Board
from scripts.litex.boards.flow import board_config
from scripts.litex.contents import Network, memory_parts
from scripts.litex.firmware import FirmwareError
from scripts.litex.loader import QUIET, Loader, LoadError, Port
from scripts.litex.results import Measurement, ResultError, read_results
from scripts.litex.simulated_board import simulate_board
from scripts.litex.soc import BAUD

_NAME = "network"
_ORIGIN = 0x40000000
"""LiteX's address of DRAM."""

_SIMULATED_QUIET = 1e-3
"""No line loses bytes between this program and the simulated system."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, run and print; returns the exit status."""
    options = _options(arguments)
    logging.disable(logging.INFO)  # LiteX describes what it builds in some hundred lines
    board = BOARDS[options.board]
    try:
        if options.output is not None:
            check_writable(options.output)
        program = load_program(options.model, DEFAULTS, options.batch, board=board_config(board, options.size))
        network = Network(_NAME, program, _images(program, options.images))
        parts = memory_parts([network], board.dram_bytes)
        port = _port(board, options)
        loader = Loader(port, _ORIGIN, options.timeout, _SIMULATED_QUIET if options.simulate else QUIET)
        measured = _run(loader, parts, program)
        if options.output is not None:
            (output,) = program.device_segments[0].outputs
            write_output(options.output, array_bytes(measured.outputs.reshape(-1, *output.shape)))
    except (InputError, PortError, ValueError) as error:
        return _failure(error, 2)
    except (LoadError, ResultError, FirmwareError, OpenmxuError, OSError) as error:
        return _failure(error, 1)
    print("\n".join(map(str, measured.classes)))
    return 0


def _images(program: Program, path: Path) -> NDArray[Any]:
    arrays = read_arrays(path)
    with naming_inputs(path):
        given = program.check_inputs(arrays)
    if len(given) != 1 or len(program.outputs) != 1:
        raise InputError("the firmware runs networks with one input and one output")
    (images,) = given.values()
    if not len(images):
        raise InputError(f"{path} has no images")
    return images


def _run(loader: Loader, parts: Sequence[tuple[int, bytes]], program: Program) -> Measurement:
    loader.connect()
    loader.write(parts)
    size = sum(len(content) for _, content in parts)
    print(f"wrote {size:,} bytes", file=sys.stderr)
    (output,) = program.device_segments[0].outputs
    measured = read_results(loader.run(), {_NAME: output})[_NAME]
    wrong = np.flatnonzero(measured.classes != measured.outputs.argmax(axis=1))
    if wrong.size:
        raise ResultError(f"the line about image {wrong[0]} is damaged: its class is not that of its outputs")
    images, cycles = len(measured.classes), measured.cycles.get("total", 0)
    print(f"{images} images, {cycles / images:,.1f} cycles of the system for each", file=sys.stderr)
    return measured


def _port(board: Board, options: argparse.Namespace) -> Port:
    if not options.simulate:
        return open_port(options.port, options.baud)
    folder = options.build or Path("build/litex") / f"{board.name}_simulation"
    return simulate_board(board_config(board, options.size), board.frequency * 1e6, board.is_ddr3, folder)


def _failure(error: Exception, status: int) -> int:
    print(f"load: error: {error}", file=sys.stderr)
    return status


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.litex.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="quantized ONNX model, or a compiled program")
    parser.add_argument("--images", type=Path, required=True, metavar="FILE", help="(count, ...) as .npy")
    parser.add_argument("--board", choices=BOARDS, required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", help="serial port of the board")
    where.add_argument("--simulate", action="store_true", help="the simulated system in place of a board")
    parser.add_argument("--baud", type=int, default=BAUD, help="default: %(default)s")
    parser.add_argument("--batch", type=int, help="images of one execution of a model; default: 1")
    parser.add_argument("--size", type=int, default=8, help="of the board's array; default: %(default)s")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds without a result; default: %(default)s")
    parser.add_argument("--output", type=Path, metavar="FILE", help="the network's outputs, as .npy")
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="of the simulated system; default: below build/")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
