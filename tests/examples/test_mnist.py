"""The committed MNIST network has the same accuracy on the device as in ONNX Runtime, because all outputs are equal."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from examples.classifier import accuracy
from examples.mnist.network import FLOAT_MODEL, MODEL, NETWORK, unseen_digits
from openmxu.compiler import import_model
from scripts.random_models import reference

LEAST_ACCURACY = 0.98


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """Scores of the whole test slice, computed by ONNX Runtime."""
    images, _ = unseen_digits()
    return reference(NETWORK.model(), {"image": images})


def test_slice_and_models():
    images, labels = unseen_digits()
    assert (images.shape, images.dtype) == ((500, 1, 28, 28), np.float32)
    assert (images.min(), images.max()) == (0, 1)
    assert set(labels) == set(range(10))
    assert accuracy(onnx.load(FLOAT_MODEL), images, labels) >= LEAST_ACCURACY


def test_whole_slice_in_integers(expected):
    images, labels = unseen_digits()
    scores = import_model(MODEL).evaluate({"image": images})["scores"]
    np.testing.assert_array_equal(scores, expected)
    assert (scores.argmax(axis=1) == labels).mean() >= LEAST_ACCURACY


@pytest.mark.parametrize(("device", "size", "images"), [("interpreter", 16, 48), ("verilator", 8, 8)])
def test_device_computes_onnx_runtimes_scores(device, size, images, expected):
    config = openmxu.Config.for_size(size)
    program = openmxu.compile(MODEL, config, batch=images // 2)
    with openmxu.open_device(device, config) as opened:
        outputs = program.run(opened, unseen_digits()[0][:images])
    np.testing.assert_array_equal(outputs["scores"], expected[:images])


def test_quantized_model_is_near_the_float_model():
    """It has the same layers, and similar scores."""
    images = unseen_digits()[0][:50]
    real, quantized = (reference(onnx.load(path), {"image": images}) for path in (FLOAT_MODEL, MODEL))
    assert np.abs(real - quantized).max() < 0.05 * np.abs(real).max()
