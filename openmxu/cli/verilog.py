"""``openmxu verilog``."""

from __future__ import annotations

import importlib.metadata
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from openmxu.arch import Config
from openmxu.cli.errors import InputError
from openmxu.cli.files import STANDARD_STREAM, check_writable, write_output
from openmxu.cli.fusesoc import core_file
from openmxu.cli.options import PresetOption, SizeOption, make_config
from openmxu.cli.report import working
from openmxu.driver.c_header import HEADER_NAME, c_header

__all__ = ["TOP", "ShellName", "verilog_command"]

TOP = "openmxu_core"
"""Name of the top module without a shell."""


class ShellName(StrEnum):
    """What stands between the core and a system."""

    NONE = "none"
    AXI = "axi"


def verilog_command(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File to write, - is stdout. With a shell: folder of its files, openmxu_axi if left out.",
        ),
    ] = None,
    size: SizeOption = None,
    preset: PresetOption = None,
    shell: Annotated[
        ShellName,
        typer.Option("--shell", metavar="NAME", help="none: the core, with streams. axi: with AXI interfaces."),
    ] = ShellName.NONE,
) -> None:
    """Write the core as one Verilog file, for any synthesis tool.

    The top module is openmxu_core. With --shell axi it is openmxu_axi, and a FuseSoC core file and a C header with its
    registers come with it. Without --size and --preset the array is 8 × 8.
    """
    config = make_config(size, preset)
    if shell is ShellName.AXI:
        _write_axi(config, Path("openmxu_axi") if output is None else output)
    elif output is None:
        raise InputError("--output is missing: the file to write, or - for stdout")
    else:
        check_writable(output)
        write_output(output, _verilog(config, shell).encode())


def _write_axi(config: Config, folder: Path) -> None:
    """Verilog, core file and C header."""
    from openmxu.rtl.axi.top import TOP as AXI_TOP

    if folder == STANDARD_STREAM:
        raise InputError("--shell axi writes several files: --output must be a folder")
    if not folder.is_dir():
        check_writable(folder)
        if folder.exists():
            raise InputError(f"cannot write {folder}: is not a directory")
        folder.mkdir()
    names = [f"{AXI_TOP}.v", f"{AXI_TOP}.core", HEADER_NAME]
    for name in names:
        check_writable(folder / name)
    core = core_file(AXI_TOP, importlib.metadata.version("openmxu"), config)
    for name, text in zip(names, (_verilog(config, ShellName.AXI), core, c_header()), strict=True):
        write_output(folder / name, text.encode())


def _verilog(config: Config, shell: ShellName) -> str:
    with working(f"Generating Verilog of an array of {config.size} × {config.size}"):
        # Imported here because the other commands need no HDL.
        from openmxu.rtl.axi.top import TOP as AXI_TOP
        from openmxu.rtl.axi.top import Top
        from openmxu.rtl.core import Core
        from openmxu.rtl.verilog import to_verilog

        return to_verilog(Top(config), AXI_TOP) if shell is ShellName.AXI else to_verilog(Core(config), TOP)
