"""``openmxu profile``."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from openmxu.models import DIGITS_MODEL, digits_test_split
from tests.profiling.profiles import digits_profile


@pytest.fixture
def command(tmp_path) -> tuple[str, ...]:
    """The command for the digits, compiled for a batch of 64, without ``--output``."""
    images, _ = digits_test_split()
    np.save(tmp_path / "x.npy", images[:70])
    digits_profile().program.save(tmp_path / "digits.mxu")
    return ("profile", "digits.mxu", "--input", "x.npy")


def test_profile_writes_a_page_and_its_numbers(openmxu, command, tmp_path):
    summary = openmxu(*command, "-o", "out", "--memory-latency", 20, "--host-rate", "7/2", "--json").json
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"index.html", "profile.json"}
    numbers = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert {name: numbers[name] for name in summary} == summary
    assert summary["device"] == "interpreter"
    assert summary["elements"] == summary["batch"] == 64  # of 70
    assert summary["layer_cycles"] == summary["cycles"] == numbers["timeline"]["cycles"]
    assert numbers["report"]["memory_latency"] == 20
    assert numbers["report"]["host_rate"] == 3.5
    page = (tmp_path / "out" / "index.html").read_text()
    assert f'<dd id="cycles">{summary["cycles"]:,}</dd>' in page
    text = openmxu(*command, "-o", "out").stdout
    assert "batch of 64 on 8 × 8 elements, times predicted by the cycle model" in text
    # Another run replaces both.
    later = openmxu(*command, "-o", "out", "--json").json
    assert later["cycles"] < summary["cycles"]
    assert json.loads((tmp_path / "out" / "profile.json").read_text())["cycles"] == later["cycles"]


def test_bad_input_is_one_line(openmxu, command, tmp_path):
    (tmp_path / "file").write_text("")
    openmxu(*command, "-o", "file").failed(2, "cannot write to file: it is no directory")
    openmxu(*command, "-o", "no/out").failed(2, "cannot write to no/out: there is no directory")
    openmxu("profile", "digits.mxu", "--input", "no.npy", "-o", "out").failed(2, "cannot read no.npy")
    np.save(tmp_path / "short.npy", np.zeros((4, 63), np.float32))
    openmxu("profile", "digits.mxu", "--input", "short.npy", "-o", "out").failed(2, "short.npy: input", "(4, 63)")
    openmxu(*command, "-o", "out", "--device", "serial:x", "--host-rate", 3).failed(2, "--host-rate needs")
    assert not (tmp_path / "out").exists()


def test_a_missing_library_is_named(openmxu, command, tmp_path):
    (tmp_path / "plotly.py").write_text("raise ModuleNotFoundError(\"No module named 'plotly'\", name='plotly')\n")
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    openmxu(*command, "-o", "out", environment={"PYTHONPATH": path}).failed(
        1, "a profile needs plotly: install it with: pip install 'openmxu[profile]'"
    )
    assert not (tmp_path / "out").exists()


def test_cores_that_the_cycle_model_does_not_know_have_no_profile(openmxu, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 64), np.float32))
    command = ("profile", DIGITS_MODEL, "--input", "x.npy", "--preset", "icebreaker", "-o", "out")
    for device in ("interpreter", "verilator"):
        openmxu(*command, "--device", device).failed(2, "does not know cores of the profile lite", "another --profile")
    assert not (tmp_path / "out").exists()
