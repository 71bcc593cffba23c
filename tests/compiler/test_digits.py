"""The model and images of the demo."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from scripts import train_digits


def test_split_equals_that_of_the_training() -> None:
    images, labels = digits_test_split()
    train_images, test_images, _, test_labels = train_digits.split()
    assert (images == test_images).all()
    assert (labels == test_labels).all()
    seen = {row.tobytes() for row in train_images}
    assert not any(row.tobytes() in seen for row in images)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_same_as_onnx_runtime(size: int) -> None:
    images, labels = digits_test_split()
    assert len(images) >= 360
    config = openmxu.Config.for_size(size)
    program = openmxu.compile(DIGITS_MODEL, config, batch=len(images))
    with openmxu.open_device("interpreter", config) as device:
        logits = program.run(device, images)["logits"]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {"image": images})
    assert (logits != expected).sum() == 0
    assert (logits.argmax(axis=1) == labels).mean() >= 0.95


def test_quantized_model_of_given_weights() -> None:
    """Weights that int8 represents exactly are unchanged, and the hidden layer saturates where ReLU does."""
    random = np.random.default_rng(0)
    integers = [random.integers(-126, 127, shape).astype(float) for shape in ((64, 5), (5, 3))]
    for matrix in integers:
        matrix[0] = 127
    weights = [integers[0] / 64, integers[1] / 32]
    images = random.integers(0, 17, (50, 64)).astype(np.float32)
    model = train_digits.quantized_model(weights, [np.zeros(5), np.zeros(3)], images)
    network = openmxu.compiler.import_network(model)
    for layer, matrix in zip(network.operations, integers, strict=True):
        assert (matrix == layer.weights[:, :, 0, 0].T).all()
    result = network.operations[0].result
    assert (result.zero_point, result.minimum) == (0, 0)
