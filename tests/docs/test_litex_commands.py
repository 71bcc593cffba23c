"""The commands about LiteX's boards work as written: with a program in the place of a board, or up to placement."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.cli.configuration import DEFAULTS
from openmxu.cli.programs import load_program
from openmxu.models import DIGITS_MODEL, digits_test_split
from tests.litex.fake_board import FakeBoard

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        shutil.which("riscv64-unknown-elf-gcc") is None, reason="the firmware needs gcc-riscv64-unknown-elf"
    ),
]

ROOT = Path(__file__).parents[2]
IMAGES = 3
PORT = "/dev/ttyUSB0"


def commands(module: str) -> list[str]:
    """The lines of the document's blocks that run a module."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/litex.md").read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith(f"python -m {module} ")]


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command in this process; returns its exit status."""
    _, _, module, *arguments = shlex.split(line, comments=True)
    main = f"{module}.__main__" if (ROOT / module.replace(".", "/")).is_dir() else module
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    sys.modules.pop(main, None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(main, run_name="__main__")
    return ended.value.code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder: the model that comes with the package, under both of its names, and some images."""
    shutil.copy(DIGITS_MODEL, tmp_path / "model.onnx")
    place = tmp_path / Path(DIGITS_MODEL).relative_to(ROOT)
    place.parent.mkdir(parents=True)
    shutil.copy(DIGITS_MODEL, place)
    np.save(tmp_path / "x.npy", digits_test_split()[0][:IMAGES])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [line for line in commands("scripts.litex.load") if PORT in line])
def test_loading_at_a_port(line, folder, monkeypatch, capsys):
    from scripts.litex.boards import BOARDS
    from scripts.litex.boards.flow import board_config

    program = load_program(folder / "model.onnx", DEFAULTS, None, board=board_config(BOARDS["ulx3s"], 8))
    board = FakeBoard(program)
    board.start()
    assert run(line.replace(PORT, board.port), monkeypatch) == 0
    board.close()
    with openmxu.open_device("interpreter", program.config) as device:
        (expected,) = program.run(device, np.load("x.npy")).values()
    assert capsys.readouterr().out.split() == [str(value) for value in expected.argmax(axis=1)]


@pytest.mark.build
@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in commands("scripts.litex.load") if "--simulate" in line])
def test_loading_the_simulated_system(line, folder, monkeypatch, capsys):
    assert run(line, monkeypatch) == 0
    assert len(capsys.readouterr().out.split()) == IMAGES


@pytest.mark.parametrize("line", commands("scripts.litex.boards"))
def test_boards(line, folder, monkeypatch, capsys):
    """What the tools of the FPGA would take an hour for, they do not do."""
    sources = []

    def implement(source, place, **options):
        sources.append((source.top, options["frequency"]))
        raise OSError("no more")

    monkeypatch.setattr("scripts.litex.boards.flow.implement", implement)
    monkeypatch.setattr("openmxu.litex.module.to_verilog", lambda *_, **__: "")
    assert run(line, monkeypatch) == 1
    assert capsys.readouterr().err == "litex: error: no more\n"
    board = shlex.split(line, comments=True)[3]
    assert sources == [(f"openmxu_{board}", {"ulx3s": 60.0, "ecpix5": 75.0}[board])]


def test_there_are_commands():
    assert len(commands("scripts.litex.load")) == len(commands("scripts.litex.boards")) == 2
