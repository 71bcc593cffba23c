"""``openmxu compile --export``: programs for the driver in C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from openmxu.embedded import c_files, driver_files, program_image
from openmxu.models import DIGITS_MODEL
from openmxu.program import Program
from tests.compiler.models.host_models import embedding

MODEL = ("compile", DIGITS_MODEL, "--size", 4, "--batch", 1, "--effort", 0)


@pytest.fixture
def program(openmxu, tmp_path: Path) -> Program:
    """The program that ``model.mxu`` holds."""
    assert openmxu(*MODEL, "-o", "model.mxu").status == 0
    return Program.load(tmp_path / "model.mxu")


def test_c(openmxu, tmp_path, program):
    """A model and its compiled program are exported alike; the folder is made, and files that it has stay."""
    for model, folder in ((MODEL, "new"), (("compile", "model.mxu"), "old")):
        if folder == "old":
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "main.c").write_text("int main(void);\n")
        text = openmxu(*model, "--export", "c", "-o", folder).stdout
        assert text.startswith(f"program              {folder}\n")
    name = {"new": "digits", "old": "model"}
    for folder, stem in name.items():
        expected = {**driver_files(), **c_files(program, stem)}
        found = {path.name: path.read_text() for path in (tmp_path / folder).iterdir() if path.name != "main.c"}
        assert found == expected
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "digits.c", "openmxu.c"]
    result = subprocess.run(command, cwd=tmp_path / "new", capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_bin(openmxu, tmp_path, program):
    assert openmxu(*MODEL, "--export", "bin", "-o", "model.bin", "--json").json["batch"] == 1
    assert (tmp_path / "model.bin").read_bytes() == program_image(program)


def test_parts_for_the_host_are_refused(openmxu, tmp_path):
    onnx.save(embedding(), tmp_path / "words.onnx")
    for form, output in (("c", "folder"), ("bin", "words.bin")):
        openmxu("compile", "words.onnx", "--export", form, "-o", output).failed(
            2, "words.onnx: the host computes words (Gather) and 1 more, and the C driver computes nothing itself"
        )
    assert {path.name for path in tmp_path.iterdir()} == {"words.onnx"}


def test_bad_outputs(openmxu, tmp_path):
    np.save(tmp_path / "file", np.zeros(1))
    openmxu(*MODEL, "--export", "c").failed(2, "--export needs --output: a folder for c, a file for bin")
    openmxu(*MODEL, "--export", "c", "-o", "-").failed(2, "cannot be written to stdout")
    openmxu(*MODEL, "--export", "c", "-o", "file.npy").failed(2, "cannot write file.npy: is not a directory")
    openmxu(*MODEL, "--export", "c", "-o", "missing/folder").failed(2, "there is no directory")
    openmxu(*MODEL, "--export", "bin", "-o", ".").failed(2, "cannot write .: is a directory")
    openmxu(*MODEL, "--export", "rust", "-o", "x").failed(2, "'rust' is not one of 'c', 'bin'")
    openmxu("compile", "missing.onnx", "--export", "c", "-o", "x").failed(2, "cannot read missing.onnx")
    assert {path.name for path in tmp_path.iterdir()} == {"file.npy"}
