"""docs/isa.md is generated from the current tables, and its examples assemble."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from openmxu.arch.config import Config
from openmxu.arch.events import Command, Counter, EventKind, Management
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, UNITS
from openmxu.assembler import assemble
from openmxu.disassembler import disassemble

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "docs" / "isa.py"
DOCUMENT = ROOT / "docs" / "isa.md"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_is_up_to_date() -> None:
    result = generate("--check")
    assert result.returncode == 0, result.stderr


def test_check_finds_a_stale_and_a_missing_document(tmp_path: Path, text: str) -> None:
    copy = tmp_path / "isa.md"
    for content in (None, text.replace("MatrixMultiply", "Matrix_Multiply"), text + "\n"):
        if content is not None:
            copy.write_text(content, encoding="utf-8")
        result = generate("--check", "--output", str(copy))
        assert result.returncode == 1
        assert result.stderr == f"{copy} is stale; run: python scripts/docs/isa.py\n"
        assert copy.exists() == (content is not None)


def test_writes_what_check_accepts(tmp_path: Path, text: str) -> None:
    copy = tmp_path / "new" / "isa.md"
    assert generate("--output", str(copy)).returncode == 0
    assert copy.read_text(encoding="utf-8") == text


def test_both_examples_are_the_same_legal_program(text: str) -> None:
    example, canonical = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    program = assemble(example, Config())
    assert disassemble(program) == canonical
    assert program[-1].format.name == "Halt"


def test_mentions_every_entry_of_the_tables(text: str) -> None:
    for format in FORMATS:
        section = text.split(f"\n### {format.name}\n")[1].split("\n##")[0]
        assert f"| 7:0 | opcode | unsigned 8 | `{int(format.opcode):#04x}` |" in section
        for field in format.fields:
            high = field.offset + field.width - 1
            place = f"{field.offset}" if field.width == 1 else f"{high}:{field.offset}"
            assert f"| {place} | `{field.name}` |" in section
    for register in REGISTERS:
        section = text.split(f"\n### {int(register.number)}: {register.name}\n")[1].split("\n##")[0]
        assert all(f"| `{field.name}` |" in section for field in register.fields)
    for member in (*UNITS, *EventKind, *Management, *Command, *Counter):
        assert f"`{member.name}` |" in text
    assert all(f"`{code.name}` |" in text for code in FaultCode if code is not FaultCode.NONE)


def test_links_lead_somewhere(text: str) -> None:
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", text)}
    links = set(re.findall(r"\]\(#(.*?)\)", text))
    assert links
    assert links <= anchors
