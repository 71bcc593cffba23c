"""The tutorials work as they stand: their blocks are executed in order, in an empty folder."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a document: language and contents."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def matches(printed: str, shown: str) -> bool:
    """Whether a document shows what was printed; … stands for anything, and so does the width of gaps."""
    pattern = re.escape(" ".join(shown.split())).replace("…", ".*")
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """The environment of a shell that has the command ``openmxu`` of this working tree."""
    folder = tmp_path_factory.mktemp("bin")
    for name, arguments in (("openmxu", "-m openmxu.cli"), ("python", "")):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    paths = (str(folder), os.environ["PATH"])
    return {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_blocks_run_and_print_what_is_shown(tutorial, tmp_path, monkeypatch, environment):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed, compared = "", 0
    for language, block in blocks(tutorial.read_text()):
        if language == "sh":
            shell = ["bash", "-e", "-c", block]
            result = subprocess.run(shell, capture_output=True, text=True, env=environment, check=False)
            assert result.returncode == 0, f"{block}\n{result.stderr}"
            printed = result.stdout
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(block, tutorial.name, "exec"), names)
            printed = output.getvalue()
        elif language == "text":
            assert matches(printed, block), f"shown:\n{block}\nprinted:\n{printed}"
            compared += 1
    assert compared


def test_what_is_printed_is_compared():
    assert matches("cycles  184\ntime  0.2 s\n", "cycles 184\ntime … s\n")
    assert not matches("cycles  184\n", "cycles  185\n")
    assert not matches("cycles  184\nmore\n", "cycles  184\n")


def test_there_are_tutorials():
    assert len(TUTORIALS) >= 3
