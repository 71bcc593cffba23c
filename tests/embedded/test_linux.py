"""The driver in C in Linux user space, with ordinary files in place of the kernel's devices."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.arch.registers import device_register
from openmxu.embedded import c_files
from openmxu.models import DIGITS_MODEL
from tests.driver.registers import CONFIG, Registers
from tests.embedded.running import ENVIRONMENT

BASE = 0x20000000
SIZE = 1 << 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of a device and of its memory."""
    registers = np.zeros(1024, "<u4")
    for offset, word in Registers().words.items():
        registers[offset // 4] = word
    (tmp_path / "uio").write_bytes(registers.tobytes())
    (tmp_path / "memory").write_bytes(bytes(SIZE))
    (tmp_path / "phys_addr").write_text(f"{BASE:#018x}\n")
    (tmp_path / "size").write_text(f"{SIZE}\n")
    return tmp_path


@pytest.fixture(scope="module")
def program(build) -> Path:
    return build("linux.c", c_files(openmxu.compile(DIGITS_MODEL, CONFIG, batch=1, effort=0), "digits"))


def lines(program: Path, folder: Path) -> list[str]:
    command = [program, folder / "uio", folder / "memory", folder]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def test_run(program, folder):
    found = lines(program, folder)
    assert found[:3] == ["open 0", "load 0", "run 3"]  # GAVE_UP
    ring = int(found[3].removeprefix("ring "), 0)
    assert BASE + 4096 < ring < BASE + SIZE
    assert found[4:] == ["start 0", "wait 1", "poll 2"]  # STOPPED
    host_offset = (folder / "uio").read_bytes()[device_register("HOST_OFFSET").offset :][:8]
    assert int.from_bytes(host_offset, "little") == BASE
    assert b"MXUP" in (folder / "memory").read_bytes()


@pytest.mark.parametrize("name", ["uio", "memory", "phys_addr", "size"])
def test_missing_files(program, folder, name):
    (folder / name).unlink()
    assert lines(program, folder) == ["No such file or directory"]


def test_no_number(program, folder):
    (folder / "size").write_text("many\n")
    assert lines(program, folder) == ["Invalid argument"]
