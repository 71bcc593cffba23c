"""``openmxu assemble`` and ``openmxu disassemble``."""

from __future__ import annotations

import pytest

from openmxu.arch.isa import WORD_BYTES

PROGRAM = "set_configuration register=HOST_STRIDE, stride=64\nsynchronize units=3\nhalt\n"


def test_text_survives_assembly_and_disassembly(openmxu, tmp_path):
    (tmp_path / "program.s").write_text(PROGRAM)
    assert openmxu("assemble", "program.s", "-o", "program.bin", "--size", 8).status == 0
    assert (tmp_path / "program.bin").stat().st_size == 3 * WORD_BYTES
    assert openmxu("disassemble", "program.bin").stdout == PROGRAM
    assert openmxu("disassemble", "program.bin", "-o", "again.s").status == 0
    assert (tmp_path / "again.s").read_text() == PROGRAM


def test_standard_streams(openmxu):
    words = openmxu("assemble", "-", "-o", "-", stdin="halt\n")
    assert words.stdout.encode() == b"\x01" + bytes(15)
    assert openmxu("disassemble", "-", stdin=words.stdout).stdout == "halt\n"


def test_program_that_would_fault_is_refused(openmxu, tmp_path):
    (tmp_path / "program.s").write_text("nop\nmatrixmultiply rows=1\nhalt\n")
    assert openmxu("assemble", "program.s", "-o", "program.bin").status == 0
    openmxu("assemble", "program.s", "-o", "checked.bin", "--size", 8).failed(2, "program.s:2:1", "NO_TILE")
    assert not (tmp_path / "checked.bin").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("halt\nfrobnicate\n", "program.s:2:1: found 'frobnicate'"),
        ("synchronize units=999", "program.s:1:19"),
        ("synchronize\x00", "program.s:1:12"),
    ],
)
def test_broken_assembly_is_one_line_and_leaves_no_file(openmxu, tmp_path, text, problem):
    (tmp_path / "program.s").write_text(text)
    openmxu("assemble", "program.s", "-o", "program.bin").failed(2, problem)
    assert [path.name for path in tmp_path.iterdir()] == ["program.s"]


def test_broken_assembly_keeps_the_previous_output(openmxu, tmp_path):
    (tmp_path / "program.s").write_text("halt halt")
    (tmp_path / "program.bin").write_bytes(b"previous")
    openmxu("assemble", "program.s", "-o", "program.bin").failed(2, "program.s:1:6")
    assert (tmp_path / "program.bin").read_bytes() == b"previous"


def test_binary_file_is_not_assembly(openmxu, tmp_path):
    (tmp_path / "program.s").write_bytes(b"halt\n\xff")
    openmxu("assemble", "program.s", "-o", "program.bin").failed(2, "program.s is no UTF-8 text", "0xff")


@pytest.mark.parametrize("command", [("assemble", "-o", "out"), ("disassemble",)])
def test_input_that_cannot_be_read(openmxu, tmp_path, command):
    openmxu(*command, "missing").failed(2, "cannot read missing: no such file or directory")
    openmxu(*command, tmp_path).failed(2, f"cannot read {tmp_path}: is a directory")


def test_output_that_cannot_be_written(openmxu, tmp_path):
    (tmp_path / "file").write_text("halt\n")
    openmxu("assemble", "file", "-o", "missing/out").failed(2, "cannot write missing/out", "no directory")
    openmxu("assemble", "file", "-o", "file/out").failed(2, "cannot write file/out", "is not a directory")
    openmxu("assemble", "file", "-o", tmp_path).failed(2, "cannot write", "is a directory")
    openmxu("assemble", "file", "-o", "/dev/full").failed(2, "cannot write /dev/full: no space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_numbers_are_comments(openmxu, tmp_path):
    (tmp_path / "program.s").write_text("nop\nhalt\n")
    assert openmxu("assemble", "program.s", "-o", "program.bin").status == 0
    numbered = openmxu("disassemble", "program.bin", "--numbers").stdout
    assert numbered == "nop  # 0\nhalt  # 1\n"
    assert openmxu("assemble", "-", "-o", "again.bin", stdin=numbered.encode()).status == 0
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "program.bin").read_bytes()


def test_models_and_assembly_are_not_disassembled(openmxu):
    openmxu("disassemble", "m.onnx").failed(2, "m.onnx is a model, not a program; openmxu compile m.onnx -o FILE.mxu")
    openmxu("disassemble", "p.s").failed(2, "p.s is assembly already")


def test_truncated_program_is_refused(openmxu, tmp_path):
    (tmp_path / "program.bin").write_bytes(bytes(17))
    openmxu("disassemble", "program.bin", "-o", "out.s").failed(2, "program.bin", "17 bytes")
    assert not (tmp_path / "out.s").exists()
