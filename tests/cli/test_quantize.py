"""``openmxu quantize``."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from openmxu import quantize
from openmxu.cli.commands.models import host_nodes
from tests.quantizer.float_models import FloatModel


@pytest.fixture
def folder(tmp_path):
    """``float.onnx`` with calibration data in ``x.npy``."""
    network = FloatModel((5,)).dense(5, 4).add("Relu").dense(4, 3)
    onnx.save(network.model(), tmp_path / "float.onnx")
    np.save(tmp_path / "x.npy", network.inputs(16))
    return tmp_path


NOTHING = {"host": [], "problem": None}
COMMAND = ("quantize", "float.onnx", "--calibration", "x.npy")


def test_model_equals_that_of_the_function(openmxu, folder):
    assert openmxu(*COMMAND, "-o", "model.onnx").status == 0
    expected = quantize(folder / "float.onnx", np.load(folder / "x.npy"))
    assert onnx.load(folder / "model.onnx") == expected
    assert openmxu("run", "model.onnx", "--input", "x.npy", "--output", "y.npy").status == 0
    assert np.load(folder / "y.npy").shape == (16, 3)


def test_activations_and_report(openmxu, folder):
    report = openmxu(*COMMAND, "-o", "model.onnx", "--activations", "int8", "--json").json
    assert report == {"activations": "int8", "calibration_inputs": 16, "operators": {"Gemm": 2}, **NOTHING}
    lines = [line.split() for line in openmxu(*COMMAND, "-o", "model.onnx").stdout.splitlines()]
    assert lines[-2:] == [["operators", "2", "Gemm"], ["on", "the", "host", "nothing"]]


def test_nodes_of_the_host_are_named(openmxu, folder):
    network = FloatModel((5,)).dense(5, 4).add("Softmax").add("Hardmax")
    onnx.save(network.model(), folder / "float.onnx")
    assert len(openmxu(*COMMAND, "-o", "model.onnx", "--json").json["host"]) == 2
    assert "(Softmax)" in openmxu(*COMMAND, "-o", "model.onnx").stdout.splitlines()[-1]


def test_errors_name_the_file(openmxu, folder):
    np.save(folder / "x.npy", np.zeros((4, 6), np.float32))
    openmxu(*COMMAND, "-o", "model.onnx").failed(2, "x.npy: calibration data for 'x' must be float32 of shape")
    np.save(folder / "x.npy", np.zeros((4, 5), np.float32))
    (folder / "float.onnx").write_bytes(b"something else")
    openmxu(*COMMAND, "-o", "model.onnx").failed(2, "float.onnx", "is no ONNX model")
    openmxu("quantize", "missing.onnx", "-c", "x.npy", "-o", "y.onnx").failed(2, "cannot read missing.onnx")
    assert sorted(path.name for path in folder.iterdir()) == ["float.onnx", "x.npy"]


def test_reason_why_a_model_cannot_be_compiled(folder):
    proto = quantize(folder / "float.onnx", np.load(folder / "x.npy"))
    proto.graph.node[-1].domain = "somewhere"
    hosts, problem = host_nodes(proto)
    assert hosts == []
    assert "somewhere" in problem
