"""Verilog memories that start as zero."""

from __future__ import annotations

import re

from openmxu.rtl.verilog.modules import with_modules

__all__ = ["with_zeroed_memories"]

_MEMORY = re.compile(r"^  reg (?:\[\d+:0\] )?(?P<name>\S+) +\[(?P<last>\d+):0\];$", re.MULTILINE)


def with_zeroed_memories(verilog: str) -> str:
    """Add a loop that writes zero to every word of each memory that has no initial values.

    Yosys writes a statement for each word. As C++, those of a large memory take longer to compile than all logic.
    """
    return with_modules(verilog, lambda module: _MEMORY.sub(lambda memory: _zeroed(memory, module), module))


def _zeroed(memory: re.Match[str], module: str) -> str:
    name, words = memory["name"], int(memory["last"]) + 1
    if f"    {name}[0] = " in module:
        return memory[0]
    # An escaped name ends with a space; the block's name is a plain one.
    block = re.sub(r"\W", "_", f"zero_{name}")
    loop = f"for (zeroed = 0; zeroed < {words}; zeroed = zeroed + 1) {name} [zeroed] = 0;"
    return f"{memory[0]}\n  initial begin : {block}\n    integer zeroed;\n    {loop}\n  end"
