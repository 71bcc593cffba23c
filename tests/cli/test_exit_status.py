"""Exit statuses that no input can cause; the commands run in this process, with one function replaced."""

from __future__ import annotations

import json

import numpy as np
import pytest

from openmxu import compiler
from openmxu.cli.application import TRACEBACK_VARIABLE, run
from openmxu.cli.commands import bench, demo
from openmxu.device import Device, DeviceHang

BENCH = ["bench", "gemm", "3", "4", "5", "--device", "interpreter"]


def test_bench_with_mismatches_fails_and_reports(monkeypatch, capfd):
    correct = compiler.evaluate

    def wrong_in_two_places(network, rows):
        result = correct(network, rows).copy()
        result[0, 0] ^= 1
        result[2, 4] ^= 1
        return result

    monkeypatch.setattr(compiler, "evaluate", wrong_in_two_places)
    assert run([*BENCH, "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["mismatches"] == 2


def test_demo_with_mismatches_fails_and_reports(monkeypatch, capfd):
    correct = demo._onnx_runtime

    def wrong_in_one_place(model, images):
        logits = correct(model, images).copy()
        logits[7, 3] = np.nextafter(logits[7, 3], np.float32(np.inf))
        return logits

    monkeypatch.setattr(demo, "_onnx_runtime", wrong_in_one_place)
    assert run(["demo", "--device", "interpreter"]) == 1
    assert "outputs that differ from ONNX Runtime  1 of 3,600" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DeviceHang("no progress:\n the matrix unit waits"), "no progress: the matrix unit waits"),
        (MemoryError(), "not enough memory"),
        (PermissionError(13, "Permission denied", "/cache"), "[Errno 13] Permission denied: '/cache'"),
        (KeyError("bank"), f"KeyError: 'bank' (a defect of openmxu; {TRACEBACK_VARIABLE}=1 shows where)"),
    ],
)
def test_failed_run_is_one_line(monkeypatch, capfd, error, message):
    def fail(*_, **__):
        raise error

    monkeypatch.delenv(TRACEBACK_VARIABLE, raising=False)
    monkeypatch.setattr(Device, "run", fail)
    assert run(BENCH) == 1
    assert capfd.readouterr() == ("", f"openmxu: error: {message}\n")


def test_defect_shows_its_traceback_on_request(monkeypatch):
    def fail(*_):
        raise KeyError("bank")

    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    monkeypatch.setattr(bench, "measured_run", fail)
    with pytest.raises(KeyError, match="bank"):
        run(BENCH)
