"""Checks how the core's memories are mapped: they must become block RAM, not flip-flops."""

from __future__ import annotations

import re

from scripts.fpga.critical_path import core_of
from scripts.fpga.parts import Part
from scripts.fpga.yosys import Netlist

__all__ = ["MEMORIES", "blocks_of_memories", "errors_of_memories"]

_EVERY = ("unified_buffer", "accumulators")

MEMORIES = {
    **dict.fromkeys(
        ("standard", "full"),
        (*_EVERY, "weight_fifo", "activation_unit.datapath.parameters", "activation_unit.datapath.table"),
    ),
    "lite": (*_EVERY, "weights", "activation_unit.biases", "activation_unit.scales"),
}
"""Prefixes of the names, from the core on, of memories that must map to block RAM, for each profile."""


def blocks_of_memories(netlist: Netlist, part: Part, profile: str) -> dict[str, int]:
    """The number of blocks of each memory of the core that must map to block RAM; empty if there is no core."""
    core = core_of(netlist.modules)
    if f"{core}unified_buffer" not in netlist.modules:
        return {}
    blocks = [
        re.sub(r"\$\d+(?=\.|$)", "", name).removeprefix(core)
        for name, kind in netlist.cells.items()
        if kind in part.block_rams
    ]
    elsewhere = tuple(name.removeprefix(core) for name in netlist.distributed)
    return {
        memory: sum(name.startswith(memory) for name in blocks)
        for memory in MEMORIES[profile]
        if not any(name.startswith(memory) for name in elsewhere)
    }


def errors_of_memories(blocks: dict[str, int]) -> list[str]:
    """The errors in these numbers: one line, or empty."""
    missing = [memory for memory, count in blocks.items() if count == 0]
    return [f"no block RAM inferred for {', '.join(missing)}"] if missing else []
