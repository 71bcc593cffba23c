"""Where the memories of the core went: they must be blocks of memory, not flip-flops."""

from __future__ import annotations

from collections.abc import Collection

from scripts.fpga.critical_path import component_of, core_of
from scripts.fpga.parts import Part
from scripts.fpga.yosys import Netlist

__all__ = ["MEMORIES", "blocks_of_memories", "errors_of_memories"]

MEMORIES = (
    "unified_buffer",
    "accumulators",
    "weight_fifo",
    "activation_unit.datapath.parameters",
    "activation_unit.datapath.table",
)
"""What the names of components begin with whose memories must be blocks, from the core on."""


def blocks_of_memories(netlist: Netlist, part: Part) -> dict[str, int]:
    """How many blocks each memory that the core has is made of."""
    core = core_of(netlist.modules)
    blocks = [
        component_of(name, netlist.modules).removeprefix(core)
        for name, kind in netlist.cells.items()
        if kind in part.block_rams
    ]
    return {
        memory: sum(component.startswith(memory) for component in blocks)
        for memory in MEMORIES
        if _has(netlist.modules, core + memory)
    }


def errors_of_memories(blocks: dict[str, int]) -> list[str]:
    """What is wrong with these: one line, or nothing."""
    missing = [memory for memory, count in blocks.items() if count == 0]
    return [f"no block RAM inferred for {', '.join(missing)}"] if missing else []


def _has(modules: Collection[str], begin: str) -> bool:
    return any(module.startswith(begin) for module in modules)
