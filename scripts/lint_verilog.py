#!/usr/bin/env python3
"""Lint the Verilog of a core with Verilator's -Wall and the waivers of rtl/lint.vlt.

    scripts/lint_verilog.py --size 16 --lanes 4

Exit status 1 when there is a warning that is not waived; what Verilator says is printed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from amaranth.lib import wiring

from openmxu.arch.config import PRESETS, Config
from openmxu.rtl.core import Core
from openmxu.rtl.verilog.convert import to_verilog
from openmxu.sim.verilator.errors import MissingToolError
from openmxu.sim.verilator.toolchain import find_toolchain

__all__ = ["TOP", "WAIVERS", "lint", "lint_component"]

TOP = "openmxu"
"""Name of the top module."""

WAIVERS = Path(__file__).resolve().parent.parent / "rtl" / "lint.vlt"
"""The warnings that are accepted, with their reasons."""

_IDLE_PROCESS = re.compile(r"^ *always @\*\n *(\S.*) = \d+'[bhd]\w+;$", re.MULTILINE)
"""A process with an empty sensitivity list, which never runs. Yosys writes it for constant bits of a signal whose other
bits are driven by a process: in simulators these bits stay undefined. Verilator does not warn."""


def lint(verilog: str, *, waivers: Sequence[Path] = (WAIVERS,)) -> str:
    """The warnings of Verilator, and of this script, about a design whose top module is ``openmxu``; empty if it is
    clean.

    Raises
    ------
    MissingToolError
        Verilator is not installed.
    """
    tools = find_toolchain()
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "openmxu.v"
        source.write_text(verilog)
        options = ["--lint-only", "-Wall", "--quiet", "--top-module", TOP]
        command = [tools.verilator, *options, *map(str, waivers), source.name]
        environment = os.environ | {"VERILATOR_ROOT": str(tools.verilator_root)}
        result = subprocess.run(command, cwd=directory, env=environment, text=True, capture_output=True, check=False)
    messages = result.stdout + result.stderr
    if result.returncode and not messages:
        return f"verilator failed with exit status {result.returncode}"
    idle = (f"%Warning-IDLEPROCESS: {target} is never assigned\n" for target in _IDLE_PROCESS.findall(verilog))
    return messages + "".join(idle)


def lint_component(component: wiring.Component) -> str:
    """:func:`lint` for the Verilog that Amaranth generates for a component."""
    return lint(to_verilog(component, TOP))


def main() -> int:
    """Lint one configuration; returns the exit status."""
    options = _parse_options()
    try:
        lanes = {} if options.lanes is None else {"activation_lanes": options.lanes}
        config = Config.for_size(options.size, **lanes) if options.size else Config.preset(options.preset, **lanes)
        messages = lint_component(Core(config))
    except (MissingToolError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(messages, end="")
    verdict = "fails" if messages else "is clean"
    print(f"the core of size {config.size} with activation_lanes {config.activation_lanes} {verdict}")
    return 1 if messages else 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--preset", choices=PRESETS, default="default", help="named sizes (default %(default)s)")
    sizes.add_argument("--size", type=int, help="S of the array, with the default sizes for it")
    parser.add_argument("--lanes", type=int, help="activation_lanes, if not the default")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
