"""``openmxu quantize``."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from openmxu import quantize
from tests.quantizer.float_models import FloatModel


@pytest.fixture
def folder(tmp_path):
    """``float.onnx`` with calibration data in ``x.npy``."""
    network = FloatModel((5,)).dense(5, 4).add("Relu").dense(4, 3)
    onnx.save(network.model(), tmp_path / "float.onnx")
    np.save(tmp_path / "x.npy", network.inputs(16))
    return tmp_path


COMMAND = ("quantize", "float.onnx", "--calibration", "x.npy")


def test_model_equals_that_of_the_function(openmxu, folder):
    assert openmxu(*COMMAND, "-o", "model.onnx").status == 0
    expected = quantize(folder / "float.onnx", np.load(folder / "x.npy"))
    assert onnx.load(folder / "model.onnx") == expected
    assert openmxu("run", "model.onnx", "--input", "x.npy", "--output", "y.npy").status == 0
    assert np.load(folder / "y.npy").shape == (16, 3)


def test_activations_and_report(openmxu, folder):
    report = openmxu(*COMMAND, "-o", "model.onnx", "--activations", "int8", "--json").json
    assert report == {"activations": "int8", "calibration_inputs": 16, "operators": {"Gemm": 2}}
    assert openmxu(*COMMAND, "-o", "model.onnx").stdout.splitlines()[-1].split() == ["operators", "2", "Gemm"]


def test_errors_name_the_file(openmxu, folder):
    np.save(folder / "x.npy", np.zeros((4, 6), np.float32))
    openmxu(*COMMAND, "-o", "model.onnx").failed(2, "x.npy: calibration data for 'x' must be float32 of shape")
    np.save(folder / "x.npy", np.zeros((4, 5), np.float32))
    (folder / "float.onnx").write_bytes(b"something else")
    openmxu(*COMMAND, "-o", "model.onnx").failed(2, "float.onnx", "is no ONNX model")
    openmxu("quantize", "missing.onnx", "-c", "x.npy", "-o", "y.onnx").failed(2, "cannot read missing.onnx")
    assert sorted(path.name for path in folder.iterdir()) == ["float.onnx", "x.npy"]
