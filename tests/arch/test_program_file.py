"""Binary program files, and atomic writing of files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmxu.arch.isa import Instruction, format_named
from openmxu.program_file import ProgramFileError, read_program, write_atomically, write_program


@given(st.lists(st.integers(0, (1 << 128) - 1).map(Instruction), max_size=5))
def test_round_trip_of_any_words(tmp_path_factory: pytest.TempPathFactory, program: list[Instruction]) -> None:
    path = tmp_path_factory.mktemp("program") / "program.bin"
    write_program(path, program)
    assert path.read_bytes() == b"".join(instruction.to_bytes() for instruction in program)
    assert read_program(path) == program


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "program.bin"
    path.write_bytes(bytes(35))
    with pytest.raises(ProgramFileError) as caught:
        read_program(str(path))
    assert str(caught.value) == (
        f"{path}: 35 bytes are no whole number of 16-byte instruction words; the file is truncated or no program"
    )


def test_a_failing_program_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "program.bin"
    path.write_bytes(b"before")

    def program() -> object:
        yield format_named("nop")()
        raise RuntimeError("no more instructions")

    with pytest.raises(RuntimeError, match="no more instructions"):
        write_program(path, program())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "program.bin"
    path.write_bytes(b"before")

    def no_space(source: object, target: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="no space left on device"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "program.bin", b"data")


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "program.bin"
    path.write_bytes(b"before")
    path.chmod(0o640)
    write_atomically(path, b"after")
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    write_atomically(tmp_path / "program.bin", b"data")
    assert (tmp_path / "program.bin").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_keeps_pointing_at_its_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"after"


def test_a_device_is_written_not_replaced() -> None:
    before = os.stat("/dev/null").st_rdev
    write_atomically("/dev/null", b"data")
    assert os.stat("/dev/null").st_rdev == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
