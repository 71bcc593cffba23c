"""``openmxu run`` of bare instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
read_host_memory host=0, unified_buffer=0, rows=2
interrupt_host tag=7
write_host_memory host=8, unified_buffer=0, rows=2
halt
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """A program that copies the first 8 bytes of host memory behind them, and memories for S = 4."""
    (tmp_path / "copy.s").write_text(PROGRAM)
    np.save(tmp_path / "host.npy", np.arange(1, 5, dtype=np.int32))
    (tmp_path / "host.bin").write_bytes(bytes(range(16)))
    return tmp_path


RUN = ("run", "copy.s", "--size", 4)


@pytest.mark.parametrize("device", ["interpreter", "model"])
def test_arrays_keep_type_and_shape(openmxu, folder, device):
    options = ("--host-memory", "host.npy", "--host-memory-output", "left.npy", "--device", device)
    result = openmxu(*RUN, *options, "--json").json
    assert (result["device"], result["size"], result["instructions"]) == (device, 4, 4)
    assert result["events"] == [
        {"kind": "interrupt", "index": 1, "tag": 7},
        {"kind": "halt", "index": 3, "tag": 0},
    ]
    assert (result["cycles"] is None) == (device == "interpreter")
    np.testing.assert_array_equal(np.load(folder / "left.npy"), np.int32([1, 2, 1, 2]), strict=True)
    text = openmxu(*RUN, *options).stdout
    assert "1 Read_Host_Memory, 1 Interrupt_Host, 1 Write_Host_Memory, 1 Halt" in text
    assert "interrupt of instruction 1, tag 7" in text


def test_words_and_plain_bytes(openmxu, folder):
    assert openmxu("assemble", "copy.s", "-o", "copy.bin").status == 0
    options = ("--host-memory", "host.bin", "--host-memory-output", "left.bin", "--size", 4)
    assert openmxu("run", "copy.bin", *options).status == 0
    assert (folder / "left.bin").read_bytes() == bytes([*range(8)] * 2)
    # The bytes alone on stdout.
    assert openmxu("run", "copy.bin", *options[:3], "-", "--size", 4).stdout.encode() == bytes([*range(8)] * 2)


def test_words_with_an_illegal_value_fault_with_its_reason(openmxu, folder):
    (folder / "copy.s").write_text("read_host_memory rows=1, host=2\nhalt\n")
    assert openmxu("assemble", "copy.s", "-o", "copy.bin").status == 0
    run = ("run", "copy.bin", "--size", 4, "--host-memory", "host.bin")
    openmxu(*run).failed(1, "instruction 0", "ILLEGAL_VALUE: host must be a multiple of 4 bytes, not 0x2")


def test_host_memory_that_is_not_kept(openmxu, folder):
    result = openmxu(*RUN, "--host-memory", "host.bin")
    assert "not kept; --host-memory-output FILE writes it" in result.stdout


def test_memory_options_of_the_model(openmxu, folder):
    options = ("--host-memory", "host.bin", "--device", "model", "--json")
    fast, slow = (openmxu(*RUN, *options, "--memory-latency", latency).json["cycles"] for latency in (4, 104))
    assert slow >= fast + 200
    openmxu(*RUN, *options[:4], "--waves", "w.vcd").failed(2, "--waves needs --device verilator: the cycle model")


@pytest.mark.parametrize(
    ("text", "status", "problem"),
    [
        ("nop", 2, "copy.s: a program must end with Halt; instruction 0, the last one, is Nop"),
        ("", 2, "copy.s: a program must end with Halt; this one is empty"),
        ("nothing", 2, "copy.s:1:1: "),
        ("read_host_memory rows=50000\nhalt", 2, "copy.s:1:"),
        (
            "read_host_memory host=8, rows=3\nhalt",
            1,
            "copy.s: instruction 0 (read_host_memory unified_buffer=0, rows=3, host=0x8): HOST_WINDOW: ",
        ),
        ("read_weights tiles=1\nhalt", 1, "(host memory has 16 bytes, weight memory 0)"),
    ],
)
def test_wrong_programs(openmxu, folder, text, status, problem):
    (folder / "copy.s").write_text(text)
    openmxu(*RUN, "--host-memory", "host.bin", "--host-memory-output", "left.bin").failed(status, problem)
    assert not (folder / "left.bin").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["copy.s"], "Missing option '--input'; bare instructions need --host-memory"),
        (["copy.s", "--input", "x"], "Missing option '--output'"),
        (["copy.s", "--weights", "w"], "--weights needs --host-memory"),
        (["copy.s", "--host-memory-output", "w"], "--host-memory-output needs --host-memory"),
        (["copy.s", "--host-memory", "host.bin", "--batch", 3], "--batch is for models"),
        (["copy.s", "--host-memory", "none"], "cannot read none: no such file"),
        (["none.bin", "--host-memory", "host.bin"], "cannot read none.bin: no such file"),
        (["host.npy", "--host-memory", "host.bin"], "bytes are no whole number of 16-byte instruction words"),
        (["m.onnx", "--host-memory", "host.bin"], "m.onnx is a model: it runs with --input and --output"),
        (["copy.s", "--host-memory", "host.bin", "--host-memory-output", "no/x"], "there is no directory"),
        (["copy.s", "--host-memory", "host.bin", "--host-memory-output", "-", "--json"], "exclude each other"),
        (["copy.s", "--host-memory", "host.bin", "--memory-latency", 3], "the interpreter has no clock"),
    ],
)
def test_wrong_usage(openmxu, folder, arguments, problem):
    (folder / "host.npy").write_bytes((folder / "host.npy").read_bytes() + b"\0")
    openmxu("run", *arguments).failed(2, problem)
