"""Memories that are written where they are read, for simulators that compile a design to a program.

Yosys writes each port of a memory as a process. Where one process reads what another one writes, the new word and its
address are kept until all processes of the clock edge have run. A process that reads, and then writes, needs no copy.
"""

from __future__ import annotations

import re

from openmxu.rtl.verilog.modules import with_modules

__all__ = ["with_clocked_memories"]

_MEMORY = re.compile(r"^  reg \[\d+:0\] (?P<name>\w+) \[\d+:0\];\n", re.MULTILINE)


def with_clocked_memories(verilog: str) -> str:
    """The same Verilog, in which a memory with one write port and one synchronous read port has one process."""
    return with_modules(verilog, _clocked)


def _clocked(module: str) -> str:
    for memory in _MEMORY.finditer(module):
        name = memory["name"]
        write = re.compile(
            rf"^  always @\(posedge (?P<clock>\S+)\) begin\n(?P<enable>    if \(.*\)\n)?"
            rf"  +{name}\[(?P<address>.*)\] <= (?P<value>.*);\n  end\n",
            re.MULTILINE,
        ).search(module)
        read = re.compile(
            rf"^  always @\(posedge (?P<clock>\S+)\) begin\n"
            rf"(?P<statement>(?:    if \(.*\) *\n)?  +\S+ <= {name}\[.*\];\n)  end\n",
            re.MULTILINE,
        ).search(module)
        uses = len(re.findall(rf"\b{name} ?\[", module))
        # The two processes, the declaration, and the loop that clears the memory.
        if write is None or read is None or write["clock"] != read["clock"] or uses != 4:
            continue
        process = (
            f"  always @(posedge {read['clock']}) begin\n{read['statement']}{write['enable'] or ''}"
            f"      {name}[{write['address']}] = {write['value']};\n  end\n"
        )
        module = module.replace(write[0], "").replace(read[0], process)
    return module
