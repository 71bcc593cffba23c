"""Commands, code and links in the README work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_block_runs(tmp_path):
    (program,) = blocks("python")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert float(result.stdout) >= 0.95


def test_python_block_is_short():
    (program,) = blocks("python")
    assert len(program.splitlines()) <= 10


@pytest.mark.parametrize(
    "line", [line for block in blocks("sh") for line in block.splitlines() if line.startswith("openmxu ")]
)
def test_command_lines_use_options_that_exist(line):
    """The help of the command must show each option."""
    words = shlex.split(line, comments=True)[1:]
    command = words[:2] if words[0] == "bench" else words[:1]
    help_text = subprocess.run(
        [sys.executable, "-m", "openmxu.cli", *command, "--help"], capture_output=True, text=True, check=True
    ).stdout
    for word in words:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", help_text), f"{word} of {line!r}"


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_make_targets_exist(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", re.findall(r"\]\(([\w./]+)\)", README))
def test_linked_files_exist(path):
    assert (ROOT / path).is_file()
