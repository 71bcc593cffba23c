"""Moves the smallest memories to distributed RAM if a part has too few memory blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

__all__ = ["in_distributed_ram", "smallest_memories"]

_MODULE = re.compile(r"^module \\?([^\s(]+).*?^endmodule", re.MULTILINE | re.DOTALL)
_MEMORY = re.compile(
    r"^( *)(?:\(\* ram_style = \"block\" \*\)\n *)?reg \[(\d+):0\] \\?(\S+) +\[(\d+):0\];", re.MULTILINE
)


def smallest_memories(verilog: str, top: str, blocks: Collection[str], too_many: int) -> list[str]:
    """The smallest memories that together use at least ``too_many`` blocks.

    Parameters
    ----------
    verilog, top
        The design, and the name of its top module.
    blocks
        Names of the blocks in its netlist: the memory's name followed by two numbers.
    too_many
        Number of blocks that the part lacks.

    Returns
    -------
    list of str
        Names of the memories, from the top module on; all memories if even they are not enough.
    """
    blocks_of = Counter(name.rsplit(".", 2)[0] for name in blocks)
    bits = {
        f"{module[1].removeprefix(top)[1:]}.{memory[3]}": (int(memory[2]) + 1) * (int(memory[4]) + 1)
        for module in _MODULE.finditer(verilog)
        for memory in _MEMORY.finditer(module[0])
    }
    chosen: list[str] = []
    for name in sorted(blocks_of.keys() & bits.keys(), key=lambda name: (bits[name] / blocks_of[name], name)):
        if sum(blocks_of[other] for other in chosen) >= too_many:
            break
        chosen.append(name)
    return chosen


def in_distributed_ram(verilog: str, top: str, names: Collection[str]) -> str:
    """The design with these memories in distributed RAM."""

    def mark(module: re.Match[str]) -> str:
        inside = module[1].removeprefix(top)[1:]

        def mark_memory(memory: re.Match[str]) -> str:
            if f"{inside}.{memory[3]}" not in names:
                return memory[0]
            indent, *_ = memory.groups()
            return f'{indent}(* ram_style = "distributed" *)\n{memory[0].splitlines()[-1]}'

        return _MEMORY.sub(mark_memory, module[0])

    return _MODULE.sub(mark, verilog)
