"""``openmxu verilog``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import openmxu
from openmxu.arch import Config
from openmxu.arch.serial import DEFAULT_BAUD
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import STANDARD_STREAM, check_writable, write_output
from openmxu.cli.report import working
from openmxu.driver.c_header import HEADER_NAME, c_header

__all__ = ["TOP", "ShellName", "core_file", "verilog_command"]

TOP = "openmxu_core"
"""Name of the top module without a shell."""


class ShellName(StrEnum):
    """Shells between the core and a system."""

    NONE = "none"
    AXI = "axi"
    SERIAL = "serial"


@configured
def verilog_command(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File to write, - is stdout. With --shell axi: folder of its files, openmxu_axi if left out.",
        ),
    ] = None,
    choice: ConfigChoice = DEFAULTS,
    shell: Annotated[
        ShellName,
        typer.Option(
            "--shell",
            metavar="NAME",
            help="none: the core, with streams. axi: with AXI interfaces. serial: with a UART, for boards without a "
            "processor.",
        ),
    ] = ShellName.NONE,
    clock: Annotated[
        int | None, typer.Option("--clock", metavar="HZ", min=1, help="Frequency of the clock of --shell serial.")
    ] = None,
    baud: Annotated[
        int | None,
        typer.Option(
            "--baud", metavar="RATE", min=1, help=f"Bits per second of --shell serial, {DEFAULT_BAUD} if left out."
        ),
    ] = None,
) -> None:
    """Write the core as one Verilog file, for any synthesis tool.

    The top module is openmxu_core. With --shell axi it is openmxu_axi, and a FuseSoC core file and a C header with its
    registers come with it. With --shell serial it is openmxu_serial. Without --size and --preset the array is 8 × 8.
    """
    config = choice.config()
    if shell is not ShellName.SERIAL and (clock is not None or baud is not None):
        raise InputError("--clock and --baud are for --shell serial")
    if shell is ShellName.AXI:
        _write_axi(config, Path("openmxu_axi") if output is None else output)
    elif output is None:
        raise InputError("--output is missing: the file to write, or - for stdout")
    else:
        check_writable(output)
        if shell is ShellName.SERIAL:
            text = _serial_verilog(config, clock, DEFAULT_BAUD if baud is None else baud)
        else:
            text = _core_verilog(config)
        write_output(output, text.encode())


def _write_axi(config: Config, folder: Path) -> None:
    """Write Verilog, core file and C header."""
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
    core = core_file(AXI_TOP, openmxu.__version__, config)
    for name, text in zip(names, (_axi_verilog(config), core, c_header()), strict=True):
        write_output(folder / name, text.encode())


def _core_verilog(config: Config) -> str:
    with _generating(config):
        # Imported here because the other commands need no HDL.
        from openmxu.rtl.cores import core_for
        from openmxu.rtl.fpga.verilog import to_verilog

        return _header(config) + to_verilog(core_for(config), TOP)


def _axi_verilog(config: Config) -> str:
    with _generating(config):
        from openmxu.rtl.axi.top import TOP as AXI_TOP
        from openmxu.rtl.axi.top import Top
        from openmxu.rtl.fpga.verilog import to_verilog

        return _header(config) + to_verilog(Top(config), AXI_TOP)


def _serial_verilog(config: Config, clock: int | None, baud: int) -> str:
    if clock is None:
        raise InputError("--shell serial needs --clock: the frequency of its clock in Hz")
    with _generating(config):
        from openmxu.rtl.fpga.verilog import to_verilog
        from openmxu.rtl.serial.link.uart import uart_divisor
        from openmxu.rtl.serial.uart_shell import TOP as SERIAL_TOP
        from openmxu.rtl.serial.uart_shell import UartShell
        from openmxu.rtl.shell.clocked import Clocked

        try:
            uart_divisor(clock, baud)
        except ValueError as error:
            raise InputError(str(error)) from None
        return _header(config) + to_verilog(Clocked(UartShell(config, clock=clock, baud=baud)), SERIAL_TOP)


def _header(config: Config) -> str:
    """Comments that say what the file is: the version, and every parameter."""
    parameters = (f"//   {name} = {value}\n" for name, value in config.as_dict().items())
    return f"// openmxu {openmxu.__version__}\n{''.join(parameters)}"


def _generating(config: Config) -> AbstractContextManager[None]:
    return working(f"Generating Verilog of an array of {config.size} × {config.size}")


def core_file(name: str, version: str, config: Config) -> str:
    """A CAPI2 core file for ``<name>.v`` with top module ``name``, and for the C header of its registers."""
    size = f"{config.size} x {config.size}"
    return f"""\
CAPI=2:

name: "openmxu::{name}:{version}"
description: "openmxu, a matrix accelerator of {size} processing elements with AXI interfaces"

filesets:
  rtl:
    files:
      - {name}.v
    file_type: verilogSource-2005
  software:
    files:
      - openmxu_registers.h
    file_type: user

targets:
  default: &default
    filesets: [rtl]
    toplevel: {name}
  lint:
    <<: *default
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wno-fatal]
  software:
    filesets: [software]
"""
