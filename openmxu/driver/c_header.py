"""The register map as a C header."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from openmxu.arch.events import IDENTIFICATION, EventKind
from openmxu.arch.faults import FAULT_DESCRIPTIONS
from openmxu.arch.registers import DEVICE_REGISTERS, MAP_VERSION, Access, BusPort, ShellKind

__all__ = ["HEADER_NAME", "c_header"]

HEADER_NAME = "openmxu_registers.h"


def _defines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Macros, their values in one column."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    return [f"#define {name:{width}} {value}" for name, value in pairs]


def _numbers(prefix: str, members: Iterable[IntEnum]) -> list[str]:
    """Macros for the members of an enumeration."""
    return _defines((f"OPENMXU_{prefix}_{member.name}", str(int(member))) for member in members)


def c_header() -> str:
    """The text of ``openmxu_registers.h``."""
    lines = [
        "/* Registers of the openmxu AXI shell. docs/registers.md of openmxu describes them.",
        " *",
        " * Generated from openmxu/arch/registers.py.",
        " *",
        " * SPDX-License-Identifier: BSD-2-Clause",
        " */",
        "#ifndef OPENMXU_REGISTERS_H",
        "#define OPENMXU_REGISTERS_H",
        "",
        *_defines([("OPENMXU_MAP_VERSION", str(MAP_VERSION)), ("OPENMXU_ID", f"{IDENTIFICATION:#018x}ULL")]),
        "",
        "/* Offsets in bytes. Those marked 64 are two words, the low one first. */",
        *_defines(
            (f"OPENMXU_{register.name}", f"{register.offset:#05x}{' /* 64 */' if register.is_wide else ''}")
            for register in DEVICE_REGISTERS
        ),
    ]
    for register in DEVICE_REGISTERS:
        if register.fields:
            access = "" if register.access is not Access.CLEAR else ": write 1 to clear"
            lines += ["", f"/* {register.name}{access} */"]
            pairs = []
            for field in register.fields:
                name = f"OPENMXU_{register.name}_{field.name}"
                pairs.append((f"{name}_SHIFT", str(field.offset)))
                pairs.append((f"{name}_MASK", f"{((1 << field.width) - 1) << field.offset:#010x}U"))
            lines += _defines(pairs)
    for comment, prefix, members in (
        ("SHELL: KIND", "SHELL_KIND", ShellKind),
        ("BUS_ERROR: PORT", "PORT", BusPort),
        ("EVENT: KIND", "EVENT_KIND", EventKind),
        ("FAULT: CODE, EVENT: FAULT", "FAULT_CODE", FAULT_DESCRIPTIONS),
    ):
        lines += ["", f"/* {comment} */", *_numbers(prefix, members)]
    return "\n".join([*lines, "", "#endif", ""])
