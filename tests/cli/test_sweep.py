"""``openmxu sweep`` and ``openmxu evaluate``."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from openmxu import Config, compile
from openmxu.models import DIGITS_MODEL, digits_test_split

ROOT = Path(__file__).parents[2]
SMALL = ("--set", "size=3,4,8", "--set", "memory_latency=4,100")


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_file_is_the_same_on_one_and_two_workers(openmxu, tmp_path):
    two = openmxu("sweep", "20x30x40", "8x8x8", *SMALL, "-o", "two.csv", "--plot", "p.html", "--workers", 2, "--json")
    assert (two.json["points"], two.json["errors"]) == (12, 4)
    result = openmxu("sweep", "20x30x40", "8x8x8", *SMALL, "-o", "one.csv", "--workers", 1)
    assert (result.status, result.stderr) == (0, "")
    assert "12, of which 4 cannot be compiled" in result.stdout
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    found = rows(tmp_path / "one.csv")
    assert [row["size"] for row in found] == ["3", "3", "4", "4", "8", "8"] * 2
    assert found[0]["error"] == "size must be a power of two, not 3"
    measured = str(json.loads((ROOT / "docs" / "fpga.json").read_text())["s8"]["lut"])
    assert [row["logic_cells"] for row in found[2:6]] == ["", "", measured, measured]
    assert int(found[3]["cycles"]) > int(found[2]["cycles"]) >= int(found[2]["bound"])
    assert int(found[2]["multiply_adds"]) == 20 * 30 * 40
    assert "plotly" in (tmp_path / "p.html").read_text()
    assert not list(tmp_path.glob("*.journal"))


def test_killed_sweep_continues(openmxu, tmp_path):
    arguments = [
        "sweep",
        "16x16x16",
        "--set",
        "size=4",
        "--set",
        "accumulator_rows=" + ",".join(str(number) for number in range(64, 144, 2)),
        "-o",
        "out.csv",
        "--workers",
        "1",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "openmxu.cli", *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    journal = tmp_path / "out.csv.journal"
    while not journal.exists() or len(journal.read_bytes().splitlines()) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = journal.read_bytes().count(b"\n")
    assert not (tmp_path / "out.csv").exists()
    result = openmxu(*arguments, "--json")
    assert result.status == 0
    assert f"has {kept} finished points" in result.stderr
    assert f'"points": 40, "measured": {40 - kept}, "resumed": {kept}, "errors": 0' in result.stdout
    assert len(rows(tmp_path / "out.csv")) == 40


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "there is nothing to sweep"),
        (["nothing"], "there is no network 'nothing'"),
        (["8x8x8", "--set", "size"], "--set must be NAME=VALUES"),
        (["8x8x8", "--set", "sizes=4"], "unknown parameter 'sizes'; is 'size' meant?"),
        (["8x8x8", "--plot", "x.pdf"], "--plot must end in .html, .svg or .png, not in '.pdf'"),
        (["8x8x8", "-o", "-"], "--output needs the name of one"),
        (["8x8x8", "--workers", 2, "--scheduler", "tcp://x:1"], "exclude each other"),
        (["--file", "bad.toml"], "bad.toml: "),
        (["absent.onnx"], "cannot read absent.onnx"),
    ],
)
def test_wrong_usage_is_one_line(openmxu, tmp_path, arguments, problem):
    (tmp_path / "bad.toml").write_text("networks = [")
    openmxu("sweep", *arguments).failed(2, problem)


def test_evaluate(openmxu, tmp_path):
    images, labels = digits_test_split()
    np.save(tmp_path / "x.npy", images[:40])
    np.save(tmp_path / "y.npy", labels[:40])
    compile(DIGITS_MODEL, Config.for_size(8), batch=8, effort=0).save(tmp_path / "digits.mxu")
    evaluation = ("evaluate", "digits.mxu", "--data", "x.npy", "--labels")
    result = openmxu(*evaluation, "y.npy", "--json").json
    assert (result["elements"], result["executions"], result["cycles"]) == (40, 5, None)
    assert result["correct"] / 40 == result["accuracy"] > 0.9
    openmxu(*evaluation, "x.npy").failed(2, "x.npy: labels must be integers of shape (40,)")
    openmxu(*evaluation, "y.npy", "--device", "serial").failed(2, "one board")
