"""Designs for boards: the board's top with its pins, as source of an implementation and as bitstream."""

from __future__ import annotations

from pathlib import Path

from amaranth.build.run import BuildPlan

from openmxu.arch.config import Config
from openmxu.rtl.boards import BOARDS, TOP, Board, BoardTop
from openmxu.rtl.fpga.target import Family, Target
from scripts.fpga.errors import FlowError, TimingError
from scripts.fpga.implementation import Implementation, Source
from scripts.fpga.multipliers import target_for
from scripts.fpga.parts import Part, find_part
from scripts.fpga.tools import run_tool

__all__ = ["find_board", "make_bitstream", "on_board", "prepare"]

_CONSTRAINTS = {Family.ECP5: ".lpf", Family.ICE40: ".pcf", Family.GOWIN: ".cst"}


def find_board(name: str) -> Board:
    """A board by its name.

    Raises
    ------
    FlowError
        There is no such board; the message lists the known ones.
    """
    if name not in BOARDS:
        raise FlowError(f"unknown board {name!r}; known: {', '.join(BOARDS)}")
    return BOARDS[name]


def prepare(board: Board, top: BoardTop, target: Target, **options: str) -> BuildPlan:
    """Amaranth's build plan for a board's design: Verilog, constraints, and scripts of the platform's toolchain.

    ``options`` are the platform's, like ``toolchain``.
    """
    platform = board.make_platform(**options)
    platform.target = target
    return platform.prepare(top, TOP, emit_src=False, debug_verilog=True)


def on_board(board: Board, config: Config, frequency: float, baud: int) -> tuple[Source, float]:
    """The board's design as source of an implementation, and the clock that its PLL generates, in MHz.

    Raises
    ------
    ValueError
        The PLL cannot generate a frequency close to this one, or the clock does not allow this baud rate.
    """
    part = find_part(board.part)
    top = BoardTop(board, config, frequency, baud)

    def plan(target: Target) -> BuildPlan:
        return prepare(board, top, target)

    def verilog(target: Target) -> str:
        return plan(target).files[f"{TOP}.debug.v"]

    made = plan(target_for(config, part, verilog))
    constraints = f"{TOP}{_CONSTRAINTS[board.family]}"
    source = Source(
        target=board.name,
        config=config,
        part=part,
        top=TOP,
        verilog=made.files[f"{TOP}.debug.v"],
        constraints=(constraints, made.files[constraints]),
    )
    return source, top.frequency


def make_bitstream(made: Implementation, part: Part, frequency: float) -> Path:
    """Write the bitstream of the fastest seed.

    Raises
    ------
    TimingError
        Its highest frequency is less than the clock's.
    MissingToolError, ToolError
        As :func:`~scripts.fpga.tools.run_tool`.
    """
    fastest = made.fastest
    if fastest.fmax < frequency:
        raise TimingError(f"the clock has {frequency:.2f} MHz, and the fastest seed reaches {fastest.fmax:.2f} MHz")
    tool, arguments, product = _PACKERS[part.family](fastest.result, TOP)
    run_tool(tool, arguments, made.netlist.folder, [fastest.result], product)
    return made.netlist.folder / product


_PACKERS = {
    Family.ECP5: lambda placed, stem: (
        "yowasp-ecppack",
        ["--compress", "--input", placed, "--bit", f"{stem}.bit"],
        f"{stem}.bit",
    ),
    Family.ICE40: lambda placed, stem: ("yowasp-icepack", [placed, f"{stem}.bin"], f"{stem}.bin"),
    Family.GOWIN: lambda placed, stem: (
        "gowin_pack",
        ["-d", "GW1N-9C", "--sspi_as_gpio", "--mspi_as_gpio", "-o", f"{stem}.fs", placed],
        f"{stem}.fs",
    ),
}
"""The commands that make a bitstream of a placed design: tool, arguments, product."""
