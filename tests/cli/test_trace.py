"""``openmxu trace``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.small_models import K, write_dense_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dense_model(tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.zeros((3, K), np.uint8))
    return tmp_path


def test_prediction_needs_no_input(openmxu, folder):
    result = openmxu("trace", "model.onnx", "-o", "t.json", "--device", "model", "--size", 4, "--json").json
    trace = json.loads((folder / "t.json").read_text())
    slices = [event for event in trace["traceEvents"] if event.get("cat") == "instruction"]
    assert len(slices) == result["instructions"]
    assert slices[-1]["ts"] + slices[-1]["dur"] == result["cycles"]["model"]
    assert result["events"] == len(trace["traceEvents"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--device verilator needs --input"),
        (["--input", "nothing.npy"], "cannot read nothing.npy"),
        (["--input", "model.onnx"], "model.onnx is no .npy file"),
        (["--input", "bad.npy"], "bad.npy: "),
        (["--input", "x.npy", "--preset", "icebreaker"], "lite cannot be recorded"),
        (["--device", "model", "--preset", "icebreaker"], "the cycle model does not know cores of the profile lite"),
    ],
)
def test_refusals(openmxu, folder, options, message):
    np.save(folder / "bad.npy", np.zeros((3, K + 1), np.uint8))
    openmxu("trace", "model.onnx", "-o", "t.json", *options).failed(2, message)
    assert not (folder / "t.json").exists()
