"""The command that loads a board, with a program in the board's place at the other end of a pseudo-terminal."""

from __future__ import annotations

import os
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.models import DIGITS_MODEL, digits_test_split
from tests.litex.fake_board import FakeBoard

pytestmark = pytest.mark.filterwarnings("ignore")

IMAGES = 5


@pytest.fixture(scope="module")
def program_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from scripts.litex.boards import BOARDS
    from scripts.litex.boards.flow import board_config

    path = tmp_path_factory.mktemp("program") / "digits.mxu"
    openmxu.compile(DIGITS_MODEL, board_config(BOARDS["ulx3s"], 4), batch=2, effort=0).save(path)
    return path


@pytest.fixture
def images_path(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", digits_test_split()[0][:IMAGES])
    return tmp_path / "x.npy"


@pytest.fixture
def board(program_path: Path) -> Iterator[FakeBoard]:
    fake = FakeBoard(openmxu.Program.load(program_path))
    fake.start()
    yield fake
    fake.close()


def load(*arguments: object) -> int:
    from scripts.litex.load import main

    return main(["--board", "ulx3s", "--size", "4", *map(str, arguments)])


def test_classes_and_outputs(board, program_path, images_path, tmp_path, capsys):
    output = tmp_path / "y.npy"
    assert load(program_path, "--images", images_path, "--port", board.port, "--output", output) == 0
    program = openmxu.Program.load(program_path)
    with openmxu.open_device("interpreter", program.config) as device:
        (expected,) = program.run(device, digits_test_split()[0][:IMAGES]).values()
    np.testing.assert_array_equal(np.load(output), expected)
    captured = capsys.readouterr()
    assert captured.out.split() == [str(value) for value in expected.argmax(axis=1)]
    assert "5 images, 100.0 cycles of the system for each" in captured.err


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (("image 3 ", "image 3 1"), "line about image 3 is damaged"),
        (("image 2", "imag"), "the firmware printed 'imag"),
        (("image 2", "image 7"), "5 results for 5 images"),
        (("cycles", "failed"), "the firmware failed: network total=500"),
    ],
)
def test_damaged_lines(board, program_path, images_path, capsys, noise, message):
    board.noise = noise
    assert load(program_path, "--images", images_path, "--port", board.port) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out


def test_another_shape(program_path, images_path, capsys):
    np.save(images_path, np.zeros((2, 63), np.float32))
    assert load(program_path, "--images", images_path, "--port", "none") == 2
    assert "must be float32 of shape (batch, 64)" in capsys.readouterr().err


def test_another_configuration(program_path, images_path, capsys):
    assert load(program_path, "--size", 8, "--images", images_path, "--port", "none") == 2
    assert "compiled for another configuration" in capsys.readouterr().err


def test_no_port(program_path, images_path, capsys):
    assert load(program_path, "--images", images_path, "--port", "/dev/none") == 2
    assert capsys.readouterr().err == "load: error: cannot open /dev/none: No such file or directory\n"


def test_nobody_at_the_port(program_path, images_path, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("scripts.litex.loader._ANSWER", 0.01)
    monkeypatch.setattr("scripts.litex.load.QUIET", 0.01)
    master, slave = os.openpty()
    tty.setraw(slave)
    arguments = (program_path, "--images", images_path, "--port", os.ttyname(slave), "--output", tmp_path / "y.npy")
    assert load(*arguments) == 1
    assert capsys.readouterr().err == "load: error: the board does not answer\n"
    assert not (tmp_path / "y.npy").exists()
    os.close(master)
    os.close(slave)


def test_a_file_that_is_no_model(images_path, tmp_path, capsys):
    (tmp_path / "x.onnx").write_bytes(b"x")
    assert load(tmp_path / "x.onnx", "--images", images_path, "--port", "none") == 2
    assert load(tmp_path / "missing.onnx", "--images", images_path, "--port", "none") == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert errors[1].endswith("missing.onnx: no such file or directory")
