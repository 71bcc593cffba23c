"""The generated files of a build: ``layout.h`` for the harness, ``memories.vlt`` for Verilator."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.lib import data

from openmxu.arch.config import Config
from openmxu.arch.events import Command, EventKind, Management
from openmxu.rtl.common.interfaces import EventLayout, ManagementRequest
from openmxu.sim.verilator.recording import WEIGHT_DATA_BIT, WEIGHT_REQUEST_BIT, Probe

__all__ = ["TOP", "layout_header", "memories_configuration"]

TOP = "openmxu_core"
"""Name of the top module, and of every generated C++ class after its V."""


def layout_header(
    config: Config, memories: Iterable[str], selector: str | None = None, probes: Iterable[Probe] = ()
) -> str:
    """``layout.h``: widths of ports, numbers that Python and C++ share, the list of the model's arrays, the name of the
    input that selects a fault, if there is one, and the signals that can be recorded, if there are any."""
    constants = {
        "HOST_ADDRESS_WIDTH": config.host_address_width,
        "HOST_DATA_BYTES": config.host_data_bytes,
        "WEIGHT_ADDRESS_WIDTH": config.weight_address_width,
        "WEIGHT_DATA_BYTES": config.weight_data_bytes,
        "REGISTER_COMMAND": Management.COMMAND,
        "COMMAND_ACKNOWLEDGE": 1 << Command.ACKNOWLEDGE,
        "WEIGHT_REQUEST_BIT": WEIGHT_REQUEST_BIT,
        "WEIGHT_DATA_BIT": WEIGHT_DATA_BIT,
    }
    constants |= {f"EVENT_{kind.name}": kind for kind in EventKind}
    for prefix, struct in (("EVENT", EventLayout), ("MANAGEMENT", ManagementRequest)):
        for name, field in data.Layout.cast(struct):
            constants[f"{prefix}_{name.upper()}_OFFSET"] = field.offset
            constants[f"{prefix}_{name.upper()}_WIDTH"] = field.width
    lines = ["#pragma once", "namespace openmxu {"]
    lines += [f"constexpr unsigned {name} = {int(value)};" for name, value in constants.items()]
    lines += ["}", "#define OPENMXU_MEMORIES(MEMORY) " + " ".join(f"MEMORY({_member(path)})" for path in memories)]
    recorded = _recorded(probes)
    if recorded:
        lines.append(f"#define OPENMXU_PROBES(PROBE) {' '.join(recorded)}")
    if selector is not None:
        lines.append(f"#define OPENMXU_SELECTOR {selector}")
    return "\n".join(lines) + "\n"


def _recorded(probes: Iterable[Probe]) -> list[str]:
    """An entry of the table for each recorded bit: the signal, its bit there, its bit in the record."""
    bits = [(probe.path, bit) for probe in probes for bit, _ in probe.bits]
    return [f"PROBE({_member(path)}, {bit}, {place})" for place, (path, bit) in enumerate(bits)]


def memories_configuration(memories: Iterable[str], probes: Iterable[Probe] = ()) -> str:
    """``memories.vlt``: keeps the arrays, and the signals that can be recorded, where C++ finds them by name."""
    arrays = dict.fromkeys(path.rpartition(".")[2] for path in memories)
    # Whatever their modules are called, which several memories may share.
    lines = ["`verilator_config", *(f'public_flat_rd -module "*" -var "{array}"' for array in arrays)]
    for probe in probes:
        path, _, signal = probe.path.rpartition(".")
        module = f"*{path.rpartition('.')[2]}" if path else TOP
        lines.append(f'public_flat_rd -module "{module}" -var "{signal}"')
    return "\n".join(lines) + "\n"


def _member(path: str) -> str:
    # Verilator writes the second of two underscores of a name as ___05F.
    return "__DOT__".join([TOP, *path.replace("__", "___05F").split(".")])
