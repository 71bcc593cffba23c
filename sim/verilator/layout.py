"""The generated files of a build: ``layout.h`` for the harness, ``memories.vlt`` for Verilator."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.lib import data

from openmxu.arch.config import Config
from openmxu.arch.events import Command, EventKind, Management
from openmxu.rtl.common.interfaces import EventLayout, ManagementRequest

__all__ = ["TOP", "layout_header", "memories_configuration"]

TOP = "openmxu_core"
"""Name of the top module, and of every generated C++ class after its V."""


def layout_header(config: Config, memories: Iterable[str], selector: str | None = None) -> str:
    """``layout.h``: widths of ports, numbers that Python and C++ share, the list of the model's arrays, and the name of
    the input that selects a fault, if there is one."""
    constants = {
        "HOST_ADDRESS_WIDTH": config.host_address_width,
        "HOST_DATA_BYTES": config.host_data_bytes,
        "WEIGHT_ADDRESS_WIDTH": config.weight_address_width,
        "WEIGHT_DATA_BYTES": config.weight_data_bytes,
        "REGISTER_COMMAND": Management.COMMAND,
        "COMMAND_ACKNOWLEDGE": 1 << Command.ACKNOWLEDGE,
    }
    constants |= {f"EVENT_{kind.name}": kind for kind in EventKind}
    for prefix, struct in (("EVENT", EventLayout), ("MANAGEMENT", ManagementRequest)):
        for name, field in data.Layout.cast(struct):
            constants[f"{prefix}_{name.upper()}_OFFSET"] = field.offset
            constants[f"{prefix}_{name.upper()}_WIDTH"] = field.width
    lines = ["#pragma once", "namespace openmxu {"]
    lines += [f"constexpr unsigned {name} = {int(value)};" for name, value in constants.items()]
    lines += ["}", "#define OPENMXU_MEMORIES(MEMORY) " + " ".join(f"MEMORY({_member(path)})" for path in memories)]
    if selector is not None:
        lines.append(f"#define OPENMXU_SELECTOR {selector}")
    return "\n".join(lines) + "\n"


def memories_configuration(memories: Iterable[str]) -> str:
    """``memories.vlt``: keeps the arrays where C++ finds them under their names."""
    arrays = dict.fromkeys(path.rpartition(".")[2] for path in memories)
    # Whatever their modules are called, which several memories may share.
    lines = ["`verilator_config", *(f'public_flat_rd -module "*" -var "{array}"' for array in arrays)]
    return "\n".join(lines) + "\n"


def _member(path: str) -> str:
    return "__DOT__".join([TOP, *path.split(".")])
