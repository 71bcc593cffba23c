"""Sums and products of a tensor and a number that is quantized like a tensor: tables, and ONNX Runtime's integers."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.compiler import import_network
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import dequantize, node
from tests.compiler.models.images import BATCH, CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters

CONFIG = openmxu.Config.for_size(8)
NUMBERS = {
    "one": np.uint8(255),
    "one_scale": np.float32(1 / 255),
    "one_zero_point": np.uint8(0),
    "x_scale": np.float32(2 / 255),
    "x_zero_point": np.uint8(128),
    "o_scale": np.float32(2 / 255),
    "o_zero_point": np.uint8(0),
}


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max"])
@pytest.mark.parametrize("names", ["x_real one_real", "one_real x_real"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
def test_same_as_onnx_runtime(operator: str, names: str, shape: tuple[int, ...]) -> None:
    """Every other result lies in the middle between two integers: ONNX Runtime's QLinearAdd rounds its own way."""
    nodes = [
        dequantize("x"),
        dequantize("one"),
        node(operator, names, "s"),
        node("QuantizeLinear", "s o_scale o_zero_point", "y"),
    ]
    values = parameters(np.random.default_rng(0)) | NUMBERS | {"one": np.full(shape, 255, np.uint8)}
    proto = image_model(nodes, values, shape=(CHANNELS, HEIGHT, WIDTH))
    assert [item.kind for item in import_network(proto).operations] == ["lookup"]
    images = random_bytes(np.random.default_rng(5), "uint8", (BATCH, CHANNELS, HEIGHT, WIDTH))
    assert differing(proto, images, CONFIG) == 0
