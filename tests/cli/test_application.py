"""Behaviour common to all commands: help, usage errors, signals and pipes."""

from __future__ import annotations

import importlib.metadata
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.small_models import K, write_dense_model

COMMANDS = ("demo", "run", "compile", "bench gemm", "array", "assemble", "disassemble", "verilog", "doctor")


def test_no_arguments_print_the_help(openmxu):
    result = openmxu()
    assert result.status == 0
    assert "Usage: openmxu" in result.stdout
    assert all(command.split()[0] in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(openmxu, command):
    result = openmxu(*command.split(), "--help")
    assert result.status == 0
    assert "Examples:" in result.stdout
    assert f"openmxu {command}" in result.stdout.split("Examples:")[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "nothing"),
        (["--nothing"], "--nothing"),
        (["assemble"], "'SOURCE'"),
        (["assemble", "a.s"], "'--output'"),
        (["assemble", "a.s", "-o", "a.bin", "--size"], "--size"),
        (["assemble", "a.s", "-o", "a.bin", "--size", "many"], "--size"),
        (["assemble", "a.s", "-o", "a.bin", "--size", "7"], "size must be a power of two, not 7"),
        (["assemble", "a.s", "-o", "a.bin", "--size", "512"], "size must be from 2 to 256, not 512"),
        (["assemble", "a.s", "-o", "a.bin", "--preset", "huge"], "unknown preset 'huge'"),
        (["assemble", "a.s", "-o", "a.bin", "--preset", "tiny", "--size", "8"], "exclude each other"),
    ],
)
def test_wrong_usage_is_one_line(openmxu, arguments, problem):
    openmxu(*arguments).failed(2, problem)


def test_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "openmxu.cli", "doctor"], stdout=write, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write)
    assert process.stderr == b""
    assert process.returncode != 0


def test_full_device_is_one_line():
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "openmxu.cli", "doctor"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert process.returncode == 1
    assert process.stderr.startswith(b"openmxu: error: ")
    assert process.stderr.count(b"\n") == 1


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_quietly_and_leaves_no_file(tmp_path, sent, status):
    """The signal arrives while the command reads its source."""
    source = tmp_path / "source"
    os.mkfifo(source)
    process = subprocess.Popen(
        [sys.executable, "-m", "openmxu.cli", "assemble", str(source), "-o", str(tmp_path / "out.bin")],
        stderr=subprocess.PIPE,
        # A shell starts background processes with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),
    )
    writer = open_for_reader(source)
    try:
        errors = send_until_it_ends(process, sent)
    finally:
        process.kill()
        process.communicate()
        os.close(writer)
    assert (process.returncode, errors) == (status, b"")
    assert list(tmp_path.iterdir()) == [source]


def send_until_it_ends(process: subprocess.Popen, sent: signal.Signals) -> bytes:
    """Send a signal until the process ends; returns its stderr. If a signal comes just before a blocking call, Python
    acts on it only after that call, or when another signal interrupts the call."""
    for _ in range(30):
        process.send_signal(sent)
        try:
            return process.communicate(timeout=1)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"the command does not end at {sent.name}")


def open_for_reader(pipe: Path) -> int:
    """A descriptor for writing to ``pipe``, opened once the command reads it."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline, "the command does not read its source"
            time.sleep(0.02)


def test_undecodable_file_name_is_one_line(openmxu):
    openmxu("disassemble", b"\xff.bin").failed(2, "\\udcff.bin: no such file or directory")


def test_closed_streams_are_not_an_error():
    command = f"{shlex.quote(sys.executable)} -m openmxu.cli"
    assert subprocess.run(f"{command} --version >&- 2>&-", shell=True, check=False).returncode == 0
    assert subprocess.run(f"{command} nothing >&- 2>&-", shell=True, check=False).returncode == 2


def test_version_is_that_of_the_package(openmxu):
    assert openmxu("--version").stdout == f"openmxu {importlib.metadata.version('openmxu')}\n"


def test_verbose_logs_on_stderr(openmxu):
    bench = ("bench", "gemm", 8, 8, 8, "--device", "interpreter", "--json")
    assert [openmxu(*bench).stderr, openmxu("-v", *bench).stderr.count("INFO openmxu.compiler.translate: ")] == ["", 1]
    assert "DEBUG" not in openmxu("--verbose", *bench).stderr
    everything = openmxu("-vv", *bench)
    assert everything.json["mismatches"] == 0
    assert "DEBUG openmxu.device: loaded " in everything.stderr


def test_an_unusable_cache_is_one_line(openmxu, tmp_path):
    (tmp_path / "file").write_text("")
    bench = ("bench", "gemm", 8, 8, 8, "--size", 4, "--device", "verilator")
    for folder in (tmp_path / "file", Path("/proc/openmxu")):
        result = openmxu(*bench, environment={"OPENMXU_CACHE": str(folder)})
        result.failed(1, f"cannot be kept in {folder}: ", "set OPENMXU_CACHE to a folder that can be written")


def progress_of(*command: object) -> str:
    """All that a command shows on a stderr that is a terminal."""
    terminal, end = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    words = [sys.executable, "-m", "openmxu.cli", *map(str, command)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # of a terminal that no process has open
        pass
    finally:
        os.close(terminal)
    assert process.wait() == 0
    return shown.decode()


def test_progress_has_a_percentage(tmp_path):
    write_dense_model(tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.zeros((40, K), np.uint8))
    files = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    shown = progress_of("run", tmp_path / "model.onnx", *files, "--batch", 8)
    assert "Running model.onnx" in shown
    assert "100%" in shown
    assert "%" not in progress_of("run", tmp_path / "model.onnx", *files, "--batch", 40)


def test_progress_is_shown_on_a_terminal_only(openmxu):
    bench = ("bench", "gemm", 8, 8, 8, "--device", "interpreter")
    assert openmxu(*bench).stderr == ""
    terminal, stderr = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "openmxu.cli", *map(str, bench)], stdout=subprocess.PIPE, stderr=stderr
        )
        printed, _ = process.communicate(timeout=60)
        shown = os.read(terminal, 65536)
    finally:
        os.close(terminal)
        os.close(stderr)
    assert process.returncode == 0
    assert b"0 of 64" in printed
    assert b"Running 8" in shown
