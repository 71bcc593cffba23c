"""The register map is consistent, and docs/registers.md and the C header agree with it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openmxu.arch.config import Config
from openmxu.arch.events import Counter, EventKind, Management
from openmxu.arch.registers import (
    ADDRESS_WIDTH,
    CONFIGURATION,
    CORE_WINDOW,
    DEVICE_REGISTERS,
    Interrupt,
    device_register,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "docs" / "registers.py"
DOCUMENT = ROOT / "docs" / "registers.md"
HEADER = ROOT / "docs" / "openmxu_registers.h"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_registers_do_not_overlap() -> None:
    end = 0
    for register in DEVICE_REGISTERS:
        assert register.offset >= end, register.name
        assert register.offset % (register.width // 8) == 0, register.name
        assert register.width in (32, 64)
        end = register.offset + register.width // 8
    assert end <= 1 << ADDRESS_WIDTH
    names = [register.name for register in DEVICE_REGISTERS]
    assert len(set(names)) == len(names)


def test_fields_do_not_overlap() -> None:
    for register in DEVICE_REGISTERS:
        end = 0
        for field in register.fields:
            assert field.offset >= end, f"{register.name}.{field.name}"
            end = field.offset + field.width
        assert end <= register.width


def test_every_parameter_can_be_read_back() -> None:
    assert list(CONFIGURATION) == [field.name for field in dataclasses.fields(Config)]


def test_core_registers_have_the_addresses_of_the_core() -> None:
    for counter in Counter:
        offset = CORE_WINDOW + 8 * (Management.COUNTERS + counter)
        assert device_register(f"COUNTER_{counter.name}").offset == offset
    for name in ("HOST_BASE", "HOST_LIMIT", "WEIGHT_BASE", "WEIGHT_LIMIT"):
        assert device_register(name).offset == CORE_WINDOW + 8 * Management[name]


def test_every_event_has_an_interrupt() -> None:
    for kind in EventKind:
        assert Interrupt[kind.name] == kind


def test_extract() -> None:
    register = device_register("BUS_ERROR")
    assert register.extract("PENDING", 0x20301) == 1
    assert register.extract("PORT", 0x20301) == 3
    assert register.extract("RESPONSE", 0x20301) == 2
    with pytest.raises(KeyError, match="BUS_ERROR has no field 'SIZE'"):
        register.extract("SIZE", 0)
    with pytest.raises(KeyError, match="NOTHING"):
        device_register("NOTHING")


def test_files_are_up_to_date() -> None:
    result = generate("--check")
    assert result.returncode == 0, result.stderr


def test_stale_and_missing_files_are_found(tmp_path: Path) -> None:
    stale = [
        f"{tmp_path / name} is stale; run: python scripts/docs/registers.py\n"
        for name in ("registers.md", "openmxu_registers.h")
    ]
    result = generate("--check", "--output", str(tmp_path))
    assert (result.returncode, result.stderr) == (1, "".join(stale))
    assert list(tmp_path.iterdir()) == []
    assert generate("--output", str(tmp_path)).returncode == 0
    (tmp_path / "registers.md").write_text("no registers")
    result = generate("--check", "--output", str(tmp_path))
    assert (result.returncode, result.stderr) == (1, stale[0])


def test_document_mentions_everything() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for register in DEVICE_REGISTERS:
        assert f"| `{register.offset:#05x}` | `{register.name}` | {register.width} | {register.access.value} |" in text
        if register.fields:
            section = text.split(f"\n### {register.name}\n")[1].split("\n##")[0]
            assert all(f"| `{field.name}` |" in section for field in register.fields)


def test_header_compiles_to_the_same_numbers(tmp_path: Path) -> None:
    names = re.findall(r"^#define (OPENMXU_\w+) +\S", HEADER.read_text(encoding="utf-8"), re.MULTILINE)
    lines = "\n".join(f'  printf("{name} %llu\\n", (unsigned long long)({name}));' for name in names)
    (tmp_path / "main.c").write_text(
        f'#include <stdio.h>\n#include "openmxu_registers.h"\nint main(void) {{\n{lines}\n  return 0;\n}}\n'
    )
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{HEADER.parent}"]
    subprocess.run(["g++", "-x", "c", *options, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    output = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    values = {name: int(value) for name, value in (line.split() for line in output.splitlines())}
    for register in DEVICE_REGISTERS:
        assert values[f"OPENMXU_{register.name}"] == register.offset
        for field in register.fields:
            name = f"OPENMXU_{register.name}_{field.name}"
            assert values[f"{name}_SHIFT"] == field.offset
            assert values[f"{name}_MASK"] == ((1 << field.width) - 1) << field.offset
    assert values["OPENMXU_PORT_PROGRAM"] == 3
    assert values["OPENMXU_EVENT_KIND_DEBUG_TAG"] == EventKind.DEBUG_TAG
