"""``openmxu verilog``."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openmxu.arch import Config
from openmxu.arch.serial import DEFAULT_BAUD
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import STANDARD_STREAM, check_writable, write_output
from openmxu.cli.report import working
from openmxu.verilog.design import DEFAULT_PREFIX, VerilogDesign, generate
from openmxu.verilog.package import Package

if TYPE_CHECKING:
    from amaranth.lib import wiring

__all__ = ["ShellName", "verilog_command"]

_PREFIX = re.compile(r"[A-Za-z]\w*", re.ASCII)


class ShellName(StrEnum):
    """Shells between the core and a system."""

    NONE = "none"
    AXI = "axi"
    SERIAL = "serial"


_TOPS = {ShellName.NONE: "core", ShellName.AXI: "axi", ShellName.SERIAL: "serial"}
"""The top module's name behind the prefix."""


@configured
def verilog_command(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A folder for all files, or a file that ends with .v; - is stdout. With --shell axi: a folder, "
            "openmxu_axi if left out.",
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
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="NAME",
            help="What the names of all modules begin with. Two different cores in one design need two.",
        ),
    ] = DEFAULT_PREFIX,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources", help='Name the file and line of each signal and statement, as attributes (* src = "..." *).'
        ),
    ] = False,
) -> None:
    """Write the core as Verilog for any synthesis tool, and what the tools need beside it.

    The top module is openmxu_core, with --shell axi openmxu_axi, with --shell serial openmxu_serial. A list of files
    (.f) and waivers for Verilator's -Wall (lint.vlt) come with each; with --shell axi also a wrapper for Vivado's IP
    integrator, scripts for Vivado and Quartus, IP-XACT, a FuseSoC core file and a C header with the registers. Without
    --size and --preset the array is 8 × 8.
    """
    config = choice.config()
    if shell is not ShellName.SERIAL and (clock is not None or baud is not None):
        raise InputError("--clock and --baud are for --shell serial")
    if _PREFIX.fullmatch(prefix) is None:
        raise InputError(f"--prefix must be a letter and then letters, digits and underscores, not {prefix!r}")
    request = _Request(choice, shell, clock, baud, prefix, sources)
    if output is None and shell is ShellName.AXI:
        output = Path(request.top)
    if output is None:
        raise InputError("--output is missing: the file or the folder to write, or - for stdout")
    if shell is ShellName.AXI and output == STANDARD_STREAM:
        raise InputError("--shell axi writes several files: --output must be a folder")
    if output == STANDARD_STREAM or (output.exists() and not output.is_dir() and not output.is_file()):
        write_output(output, request.design(config).text.encode())
    elif shell is not ShellName.AXI and not output.is_dir() and (output.is_file() or output.suffix):
        check_writable(output)
        _write(request, config, output.parent, Package(request.top, output.name, f"{output.stem}.vlt"))
    else:
        if output.exists() and not output.is_dir():
            raise InputError(f"cannot write {output}: is not a directory")
        if not output.exists():
            check_writable(output)
        package = Package(request.top, f"{request.top}.v", has_buses=shell is ShellName.AXI)
        _write(request, config, output, package)


@dataclass(frozen=True)
class _Request:
    """What the options ask for."""

    choice: ConfigChoice
    shell: ShellName
    clock: int | None
    baud: int | None
    prefix: str
    sources: bool

    @property
    def top(self) -> str:
        return f"{self.prefix}_{_TOPS[self.shell]}"

    @property
    def command(self) -> str:
        """The command, without the output, whose path says something about a machine only."""
        values = {"--clock": self.clock, "--baud": self.baud}
        words = ["openmxu", "verilog", "--shell", self.shell.value, *self.choice.arguments]
        words += [word for name, value in values.items() if value is not None for word in (name, str(value))]
        words += [] if self.prefix == DEFAULT_PREFIX else ["--prefix", self.prefix]
        return shlex.join([*words, *(["--sources"] if self.sources else [])])

    def design(self, config: Config) -> VerilogDesign:
        with working(f"Generating Verilog of an array of {config.size} × {config.size}"):
            return generate(
                self._component(config),
                config,
                self.top,
                prefix=self.prefix,
                command=self.command,
                sources=self.sources,
            )

    def _component(self, config: Config) -> wiring.Component:
        # Imported here because the other commands need no HDL.
        if self.shell is ShellName.NONE:
            from openmxu.rtl.cores import core_for

            return core_for(config)
        if self.shell is ShellName.AXI:
            from openmxu.rtl.axi.top import Top

            return Top(config)
        return _serial(config, self.clock, DEFAULT_BAUD if self.baud is None else self.baud)


def _serial(config: Config, clock: int | None, baud: int) -> wiring.Component:
    from openmxu.rtl.serial.link.uart import uart_divisor
    from openmxu.rtl.serial.uart_shell import UartShell
    from openmxu.rtl.shell.clocked import Clocked

    if clock is None:
        raise InputError("--shell serial needs --clock: the frequency of its clock in Hz")
    try:
        uart_divisor(clock, baud)
    except ValueError as error:
        raise InputError(str(error)) from None
    return Clocked(UartShell(config, clock=clock, baud=baud))


def _write(request: _Request, config: Config, folder: Path, package: Package) -> None:
    """Write all files of a package into a folder, which is made if need be."""
    if folder.is_dir():
        for name in package.names:
            check_writable(folder / name)
    contents = package.contents(request.design(config))
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        write_output(folder / name, text.encode())
