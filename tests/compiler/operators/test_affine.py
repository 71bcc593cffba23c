"""Factors and offsets per channel are folded into the preceding layer, or become a separate diagonal layer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from openmxu.compiler import import_network
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import BATCH, CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters

RANDOM = np.random.default_rng(3)
VALUES = parameters(RANDOM) | {
    "y_scale": np.float32(0.05),
    "scale": RANDOM.normal(size=CHANNELS).astype(np.float32),
    "offset": RANDOM.normal(size=CHANNELS).astype(np.float32),
    "mean": RANDOM.normal(size=CHANNELS).astype(np.float32),
    "variance": RANDOM.uniform(0.5, 2, CHANNELS).astype(np.float32),
    "zeros": np.array([1, 0, -1, 0, 2, 0], np.float32),
    "planes": RANDOM.normal(size=(1, CHANNELS, 1, 1)).astype(np.float32),
    "columns": RANDOM.normal(size=WIDTH).astype(np.float32),
    "wide": random_bytes(RANDOM, "int8", (CHANNELS, CHANNELS, 3, 3)),
    "wide_scale": RANDOM.uniform(0.0005, 0.002, CHANNELS).astype(np.float32),
    "wide_zero_point": np.zeros(CHANNELS, np.int8),
}
NORMALIZE = "scale offset mean variance"


def model(*middle: onnx.NodeProto, last: str = "n") -> onnx.ModelProto:
    return image_model([dequantize("x"), *middle, quantize(last, "y", "y")], VALUES)


def behind_conv(*middle: onnx.NodeProto) -> onnx.ModelProto:
    return model(dequantize("wide", axis=0), node("Conv", "x_real wide_real", "c"), *middle)


MODELS = {
    "by itself": model(node("BatchNormalization", f"x_real {NORMALIZE}", "n")),
    "behind a layer": behind_conv(node("BatchNormalization", f"c {NORMALIZE}", "n", epsilon=0.1)),
    "nothing of some channels": behind_conv(node("BatchNormalization", "c zeros offset mean variance", "n")),
    "factor and offset": model(node("Mul", "x_real planes", "m"), node("Sub", "planes m", "n")),
    "columns": model(node("Add", "columns x_real", "n")),
    "quotient behind a layer": behind_conv(node("Div", "c planes", "d"), node("Add", "d planes", "n")),
}


@pytest.mark.parametrize("name", MODELS)
def test_at_most_one_apart(name: str) -> None:
    inputs = random_bytes(np.random.default_rng(1), "uint8", (BATCH, CHANNELS, HEIGHT, WIDTH))
    assert differing(MODELS[name], inputs, openmxu.Config.for_size(8), BATCH) <= 1
    assert len(import_network(MODELS[name]).operations) == 1
