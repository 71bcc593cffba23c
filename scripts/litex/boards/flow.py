"""From a board to the bitstream of its system: LiteX generates, Yosys and nextpnr make the rest."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from litex.build.generic_platform import IOStandard
from litex.build.lattice.platform import LatticePlatform
from litex.soc.integration.builder import Builder

from openmxu.arch.config import Config
from openmxu.litex import openmxu_config
from scripts.fpga.boards import make_bitstream
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import Implementation, Say, Source, implement, make_netlist
from scripts.fpga.parts import find_part
from scripts.fpga.yosys import Netlist
from scripts.litex.boards.board import Board
from scripts.litex.firmware import firmware
from scripts.litex.soc import Firmware, System, verilog_of

__all__ = ["BoardSystem", "board_config", "board_source", "implement_board", "synthesize_board", "write_bitstream"]


class BoardSystem(System):
    """The system with the board's clocks, DRAM and serial port."""

    def __init__(self, board: Board, frequency: float, firmware_of: Firmware, config: Config) -> None:
        platform = LatticePlatform(board.device, list(board.pins), name=board.name, toolchain="trellis")
        self.crg = board.clocks(platform, frequency)
        dram = board.dram(platform, frequency, self.crg)
        super().__init__(platform, frequency, dram, firmware_of, "serial", **config.as_dict())


def board_config(board: Board, size: int) -> Config:
    """The core on a board, with an array of size × size."""
    return openmxu_config(size=size, data_bytes=board.data_bytes)


def board_source(board: Board, config: Config, frequency: float, folder: Path) -> Source:
    """Generate the system and compile its firmware; ``frequency`` is in MHz.

    Raises
    ------
    scripts.litex.firmware.FirmwareError
        The firmware cannot be compiled.
    """
    top = f"openmxu_{board.name}"
    system = BoardSystem(board, frequency * 1e6, lambda headers: firmware(headers, folder / "firmware"), config)
    # The part of LiteX's flow that generates; the tools are those of the project's other bitstreams.
    system.platform.build = lambda fragment, **given: _write(board, system.platform, fragment, **given)
    builder = Builder(system, output_dir=str(folder / "litex"), compile_software=False, compile_gateware=False)
    builder.build(build_name=top)
    gateware, implementation = Path(builder.gateware_dir), folder / "implementation"
    contents = sorted(gateware.glob("*.init"))
    for place in (implementation, implementation / "again"):
        place.mkdir(parents=True, exist_ok=True)
        for path in contents:
            shutil.copy(path, place)
    # The netlist is made again when the Verilog changes, which only names the files.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in contents)).hexdigest()
    verilog = verilog_of(system.platform, gateware / f"{top}.v")
    return Source(
        target=board.title,
        config=config,
        part=find_part(board.device),
        top=top,
        verilog=f"{verilog}// memories: {digest}\n",
        constraints=(f"{top}.lpf", (gateware / f"{top}.lpf").read_text()),
    )


def synthesize_board(source: Source, folder: Path, say: Say) -> Netlist:
    """The system's netlist, without a placement."""
    say("synthesis")
    return make_netlist(source, folder / "implementation", say)


def implement_board(source: Source, folder: Path, seeds: Sequence[int], frequency: float, say: Say) -> Implementation:
    """Place and route the system with each seed."""
    return implement(source, folder / "implementation", seeds=seeds, frequency=frequency, say=say)


def write_bitstream(board: Board, made: Implementation, frequency: float) -> Path:
    """Write the bitstream of the fastest placement, if all of its clocks are fast enough.

    Raises
    ------
    FlowError
        A clock is too slow, the design does not fit, or a tool failed.
    """
    if not made.placements:
        raise FlowError(f"the system does not fit {board.device}")
    report = made.netlist.folder / f"{made.netlist.top}.{made.fastest.seed}.report.json"
    for name, clock in json.loads(report.read_text())["fmax"].items():
        if clock["achieved"] < clock["constraint"]:
            reached = f"{clock['achieved']:.2f} MHz"
            raise FlowError(f"the clock {name} has {clock['constraint']:g} MHz, and reaches {reached}")
    return make_bitstream(made, find_part(board.device), frequency)


def _write(board: Board, platform: Any, fragment: Any, *, build_dir: str, build_name: str, **_: Any) -> Any:
    """Verilog, contents of memories, and constraints."""
    fragment = fragment.get_fragment()
    platform.finalize(fragment)
    folder = Path(build_dir)
    verilog = platform.get_verilog(fragment, name=build_name)
    names, _ = platform.resolve_signals(verilog.ns)
    clock, hertz = board.oscillator
    lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;", f'FREQUENCY PORT "{clock}" {hertz / 1e6:g} MHZ;']
    for signal, pins, attributes, _resource in names:
        for index, pin in enumerate(pins):
            port = f"{signal}[{index}]" if len(pins) > 1 else signal
            lines.append(f'LOCATE COMP "{port}" SITE "{pin}";')
            lines += [f'IOBUF PORT "{port}" {_attribute(item)};' for item in attributes]
    (folder / f"{build_name}.lpf").write_text("\n".join(lines) + "\n")
    with chdir(folder):
        verilog.write(f"{build_name}.v")
    return verilog.ns


def _attribute(item: Any) -> str:
    return f"IO_TYPE={item.name}" if isinstance(item, IOStandard) else item.misc
