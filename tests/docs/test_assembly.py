"""docs/assembly.md runs as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "assembly.md").read_text()


def blocks(kind: str) -> list[str]:
    """The blocks of code of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_program_multiplies(tmp_path):
    (program,) = blocks("text")
    (command,) = blocks("sh")
    before, after = blocks("python")
    (tmp_path / "product.s").write_text(program)
    run([sys.executable, "-c", before], tmp_path)
    program_name, *arguments = shlex.split(command)
    assert program_name == "openmxu"
    printed = run([sys.executable, "-m", "openmxu.cli", *arguments], tmp_path)
    (cycles,) = re.findall(r"^cycles +(\d+)$", printed, re.MULTILINE)
    assert f"{cycles} predicted cycles" in TEXT.replace("\n", " ")
    assert run([sys.executable, "-c", before + after], tmp_path).startswith("[[")


def test_the_fault_is_the_documented_one(tmp_path):
    (program,) = blocks("text")
    (tmp_path / "product.s").write_text(program)
    (tmp_path / "host").write_bytes(bytes(79))
    (tmp_path / "weights").write_bytes(bytes(16))
    run_ = ["run", "product.s", "--size", "4", "--host-memory", "host", "--weights", "weights"]
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run([sys.executable, "-m", "openmxu.cli", *run_], tmp_path)
    (documented,) = re.findall(r"`(instruction 5 [^…]*)…`", TEXT)
    assert documented in caught.value.stderr
