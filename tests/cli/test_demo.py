"""``openmxu demo``."""

from __future__ import annotations

import pytest

ROWS = ("outputs that differ from ONNX Runtime  0 of 3,600", "accuracy ", "accuracy of ONNX Runtime ")
RTL_ROWS = ("cycles per image ", "array utilization ", "images per second of simulation ")


def test_interpreter_equals_onnx_runtime(openmxu):
    result = openmxu("demo", "--device", "interpreter", "--size", 16, "--json").json
    assert (result["images"], result["outputs"], result["mismatches"]) == (360, 3600, 0)
    assert result["accuracy"] == result["onnxruntime_accuracy"] >= 0.95
    assert result["cycles"] is result["utilization"] is result["cycles_per_second"] is None


def test_simulated_rtl_equals_onnx_runtime(openmxu):
    result = openmxu("demo", "--json").json
    assert (result["device"], result["size"], result["images"]) == ("verilator", 8, 360)
    assert result["mismatches"] == 0
    assert result["accuracy"] == result["onnxruntime_accuracy"] >= 0.95
    assert result["utilization"] == pytest.approx(result["multiply_adds"] / (64 * result["cycles"]))
    assert result["cycles_per_second"] > 0
    assert result["images_per_second"] > 0


def test_text_output(openmxu):
    result = openmxu("demo")
    assert (result.status, result.stderr) == (0, "")
    for row in (*ROWS, *RTL_ROWS):
        assert row in result.stdout


def test_missing_compiler_is_one_line(openmxu, tmp_path):
    openmxu("demo", environment={"PATH": str(tmp_path)}).failed(1, "apt install g++")


def test_missing_onnx_runtime_is_one_line(openmxu, tmp_path):
    """A module that raises ImportError takes the place of a missing one."""
    (tmp_path / "onnxruntime.py").write_text("raise ImportError")
    result = openmxu("demo", environment={"PYTHONPATH": str(tmp_path)})
    result.failed(1, "pip install 'openmxu[demo]'")
