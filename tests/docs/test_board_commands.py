"""Each command about boards in the documents works as written: at a simulated board, or down to a small bitstream."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scripts import synthesize
from scripts.fpga.implementation import Implementation
from tests.boards import simulated_board
from tests.cli.small_models import K, write_dense_model
from tests.fpga.test_boards import Echo

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/fpga.md", "docs/serial.md", "docs/tutorials/board.md", "README.md")
PORT = re.compile(r"/dev/ttyUSB\d")


def commands(*beginnings: str) -> list[str]:
    """The lines of the documents' blocks that begin like this, without comments, each once."""
    text = "".join((ROOT / name).read_text() for name in DOCUMENTS)
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [shlex.join(shlex.split(line, comments=True)) for block in blocks for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line.startswith(beginnings)))


def at_a_port() -> list[object]:
    """The commands that need a board. The demo is slow: it compiles the digits for a batch of 360."""
    lines = [line for line in commands("openmxu ") if PORT.search(line) or line == "openmxu devices"]
    return [pytest.param(line, marks=[pytest.mark.slow] if " demo " in line else []) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """A folder with a model, its input, and the port of a simulated board."""
    path = tmp_path_factory.mktemp("board")
    write_dense_model(path / "model.onnx")
    np.save(path / "x.npy", np.zeros((2, K), np.uint8))
    simulated = [shlex.split(line) for line in commands("openmxu simulate-board")]
    assert simulated == [["openmxu", "simulate-board", "tang_nano_9k", "--link", "board"]]
    with simulated_board("tang_nano_9k", path):
        yield path


@pytest.mark.parametrize("line", at_a_port())
def test_commands_at_a_port(line, folder):
    words = shlex.split(PORT.sub("board", line))[1:]
    command = [sys.executable, "-m", "openmxu.cli", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    if words[0] == "run":
        assert np.load(folder / words[words.index("--output") + 1]).shape == (2, 5)


def test_there_are_commands_at_a_port():
    names = {shlex.split(param.values[0])[1] for param in at_a_port()}
    assert names == {"devices", "demo", "run", "compile"}


def options_of(line: str) -> list[str]:
    """The options with which a command calls scripts/synthesize.py; make says them itself."""
    if line.startswith("make "):
        # Below another make, as in make test, it would also say which folder it enters and leaves.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", "-n", *shlex.split(line)[1:]]
        shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        line = shown.stdout.splitlines()[-1]
    return shlex.split(line.partition("scripts/synthesize.py ")[2])


@pytest.mark.parametrize("line", commands("make bitstream", "python scripts/synthesize.py --board"))
def test_bitstreams(line, tmp_path, monkeypatch):
    """With a small design in place of the shell, and without Yosys and nextpnr, which other tests run on it."""
    seen = []

    def implement(source, folder, *, seeds, frequency, say):
        seen.append((source.target, seeds, frequency))
        report = {"fits": True, "errors": [], "overflows": {}, "fmax_mhz": frequency, "critical_path": None}
        return Implementation(None, (), report)

    monkeypatch.setattr("openmxu.rtl.boards.top.UartShell", Echo)
    monkeypatch.setattr(synthesize, "implement", implement)
    monkeypatch.setattr(synthesize, "summary", str)
    monkeypatch.setattr(synthesize, "make_bitstream", lambda made, part, clock: tmp_path / "openmxu_board.bit")
    assert synthesize.main([*options_of(line), "--output", str(tmp_path)]) == 0
    ((target, seeds, _),) = seen
    assert target in line
    assert seeds == ([1] if "SEED=1" in line or "--seed 1" in line else synthesize.SEEDS)


def test_there_are_bitstreams():
    lines = commands("make bitstream", "python scripts/synthesize.py --board")
    assert any("BAUD=3000000" in line for line in lines)
    assert any("--seed 1" in line or "SEED=1" in line for line in lines)
    assert {board for board in ("ulx3s_85f", "icebreaker", "tang_nano_9k") if any(board in line for line in lines)} == {
        *("ulx3s_85f", "icebreaker", "tang_nano_9k")
    }
