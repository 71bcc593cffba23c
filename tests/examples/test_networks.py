"""The seeded networks: outputs depend on inputs, and the device computes the same integers as ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from examples.cifar10.network import NETWORK as CIFAR10
from examples.classifier import Classifier
from examples.fashion.network import NETWORK as FASHION
from examples.resnet20.network import NETWORK as RESNET20
from scripts.networks.comparison import LayerComparison, compare_layers, compare_network
from scripts.networks.layers import layer_models
from scripts.random_models import reference_outputs


@pytest.fixture(scope="module")
def models() -> dict[str, onnx.ModelProto]:
    """The quantized networks by name."""
    return {network.name: network.model() for network in (FASHION, CIFAR10, RESNET20)}


@pytest.mark.parametrize("network", [FASHION, CIFAR10, RESNET20], ids=lambda network: network.name)
def test_outputs_differ_between_inputs(network: Classifier, models):
    (scores,) = reference_outputs(models[network.name], {"image": network.inputs(100)}).values()
    classes = np.bincount(scores.argmax(axis=1), minlength=10)
    assert classes.max() < 50
    assert np.count_nonzero(classes) >= 6
    assert (np.ptp(scores, axis=0) > 0).all()


@pytest.mark.parametrize("network", [FASHION, CIFAR10, RESNET20], ids=lambda network: network.name)
def test_layers_and_outputs_on_the_interpreter(network: Classifier, models):
    model, inputs = models[network.name], {"image": network.inputs(2, seed=1)}
    config = openmxu.Config.for_size(16)
    with openmxu.open_device("interpreter", config) as device:
        layers = compare_layers(model, inputs, device, batch=2)
        whole = compare_network(model, inputs, device, batch=2)
    assert [item.layer.name for item in layers if not item.passed] == []
    assert whole.equal_classes == 2
    if all(item.layer.is_exact for item in layers):
        assert whole.differing == 0


def test_residual_network_on_the_rtl(models):
    config = openmxu.Config.for_size(8)
    with openmxu.open_device("verilator", config) as device:
        whole = compare_network(models["resnet20"], {"image": RESNET20.inputs(1, seed=2)}, device, batch=1)
    assert (whole.inputs, whole.outputs, whole.equal_classes) == (1, 10, 1)


def test_layers_cover_every_operator_of_the_device(models):
    """Each operator belongs to exactly one layer; operators of the host, and those that compute nothing, to none."""
    host = {"BatchNormalization", "Softmax"}
    for model in models.values():
        moving = {"QuantizeLinear", "DequantizeLinear", "Flatten"}
        wanted = [node.name for node in model.graph.node if node.op_type not in moving | host]
        layers = layer_models(model)
        assert "+".join(layer.name for layer in layers).split("+") == wanted
        inexact = [layer.name.partition("_")[0] for layer in layers if not layer.is_exact]
        assert set(inexact) <= {"add", "globalaveragepool"}
    assert len(inexact) == 10  # of the last network, ResNet-20


def test_allowed_differences_of_layers(models):
    exact, *_, inexact = sorted(layer_models(models["resnet20"]), key=lambda layer: not layer.is_exact)
    assert LayerComparison(exact, 10, 0, 0).passed
    assert not LayerComparison(exact, 10, 1, 1).passed
    assert LayerComparison(inexact, 10, 1, 1).passed
    assert not LayerComparison(inexact, 10, 1, 2).passed
