"""The example of docs/c_driver.md compiles, and its names are those of the exported files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import openmxu
from openmxu.embedded import c_files, driver_files
from openmxu.models import DIGITS_MODEL
from tests.driver.registers import CONFIG

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "c_driver.md").read_text()
FLAGS = "-std=c99 -Wall -Wextra -Werror -pedantic -ffreestanding -fsyntax-only"


def test_example_compiles(tmp_path):
    (example,) = re.findall(r"```c\n(.*?)```", DOCUMENT, re.DOTALL)
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=1, effort=0)
    for name, text in {**driver_files(), **c_files(program, "model"), "example.c": example}.items():
        (tmp_path / name).write_text(text)
    sources = [tmp_path / name for name in ("example.c", "model.c", "openmxu.c")]
    for more in ([], ["-DOPENMXU_NO_FLOAT"]):
        result = subprocess.run(
            ["gcc", *FLAGS.split(), *more, f"-I{tmp_path}", *sources], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr


def test_length_of_the_driver():
    lines = sum(len(driver_files()[name].splitlines()) for name in ("openmxu.h", "openmxu.c"))
    assert f"{lines} lines with its header" in DOCUMENT
    assert lines < 600


def test_functions_exist():
    header = driver_files()["openmxu.h"] + driver_files()["openmxu_linux.h"]
    for name in re.findall(r"`(openmxu_\w+)[`(]", DOCUMENT):
        assert f"{name}(" in header, name
