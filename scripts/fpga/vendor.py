"""Projects for vendors' tools, which this project does not run."""

from __future__ import annotations

from pathlib import Path

from openmxu.arch.config import Config
from openmxu.rtl.axi.top import TOP, Top
from openmxu.rtl.boards import Board, BoardTop
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.boards import prepare
from scripts.fpga.errors import FlowError

__all__ = ["TOOLCHAINS", "VIVADO", "board_project", "vivado_project"]

VIVADO = "vivado"

_OF_BOARDS = {
    "diamond": (Family.ECP5, "Diamond"),
    "icecube2": (Family.ICE40, "LSE-iCECube2"),
    "gowin": (Family.GOWIN, "Gowin"),
}
"""Families, and Amaranth's names of their vendors' tools."""

TOOLCHAINS = (VIVADO, *_OF_BOARDS)

_XDC = "create_clock -name aclk -period {period:.3f} [get_ports aclk]\n"
_TCL = """\
# vivado -mode batch -source {top}.tcl
read_verilog {top}.v
read_xdc -mode out_of_context {top}.xdc
synth_design -top {top} -part {part} -mode out_of_context
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file utilization.txt
report_timing_summary -file timing.txt
write_checkpoint -force {top}.dcp
"""


def vivado_project(config: Config, part: str, frequency: float, folder: Path) -> Path:
    """Write a project that places the AXI shell out of context with Vivado; returns the script."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"{TOP}.v": to_verilog(Top(config), TOP, Target()),
        f"{TOP}.xdc": _XDC.format(period=1000 / frequency),
        f"{TOP}.tcl": _TCL.format(top=TOP, part=part),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / f"{TOP}.tcl"


def board_project(board: Board, config: Config, frequency: float, baud: int, toolchain: str, folder: Path) -> Path:
    """Write a project that makes a bitstream with the vendor's tools; returns the script that runs them.

    Raises
    ------
    FlowError
        The toolchain does not support the board's FPGA.
    """
    family, name = _OF_BOARDS[toolchain]
    if family is not board.family:
        raise FlowError(f"{toolchain} is not for {board.part}")
    plan = prepare(board, BoardTop(board, config, frequency, baud), Target(board.family), toolchain=name)
    plan.extract(str(folder))
    return folder / f"{plan.script}.sh"
