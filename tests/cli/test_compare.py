"""``openmxu compare``."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from openmxu import quantize
from tests.quantizer.float_models import FloatModel


@pytest.fixture
def folder(tmp_path):
    """``model.onnx``, ``float.onnx``, inputs ``x.npy`` and labels ``l.npy``."""
    network = FloatModel((5,)).dense(5, 4).add("Relu").dense(4, 3)
    onnx.save(network.model(), tmp_path / "float.onnx")
    onnx.save(quantize(network.model(), network.inputs(16)), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", network.inputs(10))
    np.save(tmp_path / "l.npy", np.arange(10) % 3)
    return tmp_path


COMMAND = ("compare", "model.onnx", "--input", "x.npy", "--size", "4")


def test_table(openmxu, folder):
    result = openmxu(*COMMAND, "--float", "float.onnx", "--labels", "l.npy")
    assert result.status == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["inputs", "10"]
    assert lines[1] == ["outputs", *["30", "of", "30", "numbers", "are", "ONNX", "Runtime's"]]
    assert lines[2][:2] == ["accuracy", "float"]
    assert lines[3] == ["first", "layer", "that", "differs", "none"]
    assert [line[1:5] for line in lines[-2:]] == [["Gemm", "40", "0", "0"], ["Gemm", "30", "0", "0"]]


def test_json(openmxu, folder):
    report = openmxu(*COMMAND, "--json").json
    assert (report["outputs"], report["differing"], report["accuracy"], report["first"]) == (30, 0, {}, None)
    assert [layer["sqnr"] for layer in report["layers"]] == [None, None]


def test_errors_name_the_file(openmxu, folder):
    openmxu(*COMMAND, "--labels", "x.npy").failed(2, "x.npy: labels must be integers of shape 10")
    np.savez(folder / "l.npz", l=np.zeros(10, int))
    openmxu(*COMMAND, "--labels", "l.npz").failed(2, "l.npz is an archive")
    openmxu(*COMMAND, "--float", "missing.onnx").failed(2, "cannot read missing.onnx")
    (folder / "bad.onnx").write_bytes(b"something else")
    openmxu(*COMMAND, "--float", "bad.onnx").failed(2, "bad.onnx", "is no ONNX model")
    np.save(folder / "y.npy", np.zeros((3, 4), np.float32))
    openmxu("compare", "model.onnx", "-i", "y.npy").failed(2, "y.npy: input 'x' must be float32 of shape (batch, 5)")
    assert openmxu("compile", "model.onnx", "-o", "model.mxu").status == 0
    openmxu("compare", "model.mxu", "-i", "x.npy").failed(2, "model.mxu is compiled already")
