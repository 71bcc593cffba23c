"""Resize to the nearest element: the elements that ONNX Runtime takes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from openmxu import UnsupportedOperatorError
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import BATCH, CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters

CONFIG = openmxu.Config()
RANDOM = np.random.default_rng(3)
IMAGES = random_bytes(RANDOM, "uint8", (BATCH, CHANNELS, HEIGHT, WIDTH))

TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SCALES = ((2, 2), (3, 1.5), (0.5, 0.7), (1, 1))
SIZES = ((13, 5), (17, 2), (HEIGHT, 2 * WIDTH))


def convolution(output: str) -> onnx.NodeProto:
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    return node("QLinearConv", names, output, pads=[1, 1, 1, 1])


def resized(inputs: str, values: dict[str, np.ndarray], opset: int = 21, **attributes: object) -> onnx.ModelProto:
    """A convolution to 10 channels and Resize of its bytes."""
    nodes = [convolution("h"), node("Resize", f"h {inputs}", "y", **attributes)]
    model = image_model(nodes, parameters(RANDOM) | values)
    model.opset_import[0].version = opset
    return model


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_scales(transform: str, rounding: str) -> None:
    for scales in SCALES:
        model = resized(
            "- scales",
            {"scales": np.array([1, 1, *scales], np.float32)},
            coordinate_transformation_mode=transform,
            nearest_mode=rounding,
        )
        assert differing(model, IMAGES, CONFIG) == 0, scales


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(transform: str, sizes: tuple[int, int]) -> None:
    """Of the dimensions behind the channels only, so that the batch stays open."""
    attributes = {"axes": [2, 3], "coordinate_transformation_mode": transform}
    assert differing(resized("- - sizes", {"sizes": np.array(sizes)}, **attributes), IMAGES, CONFIG) == 0


def test_all_sizes_of_a_fixed_batch() -> None:
    model = resized("- - sizes", {"sizes": np.array([BATCH, 10, 20, 4])})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = BATCH
    assert differing(model, IMAGES, CONFIG) == 0


def test_the_oldest_version() -> None:
    model = resized("scales", {"scales": np.array([1, 1, 3, 0.4], np.float32)}, opset=10)
    assert differing(model, IMAGES, CONFIG) == 0


def test_between_two_layers() -> None:
    """As networks for segmentation and detection have it."""
    values = parameters(RANDOM) | {"scales": np.array([1, 1, 2, 2], np.float32)}
    nodes = [
        *(convolution("h"), dequantize("h"), node("Resize", "h_real - scales", "r", mode="nearest")),
        *(quantize("r", "q", "h"), dequantize("q", "h"), node("DequantizeLinear", "v v_scale", "v_real")),
        *(node("Conv", "q_real v_real", "c"), quantize("c", "y", "y")),
    ]
    assert differing(image_model(nodes, values), IMAGES, CONFIG) == 0


@pytest.mark.parametrize(
    ("inputs", "values", "attributes", "reason"),
    [
        ("- scales", [1, 1, 2, 2], {"mode": "linear"}, "supported: mode nearest without keep_aspect_ratio_policy"),
        ("- scales", [2, 1, 1, 1], {}, "the batch must stay what it is"),
        ("- scales", [1, 1, 1, 0.01], {}, "its scales and sizes must be positive"),
        ("- scales", [1, 1, 2, 2], {"coordinate_transformation_mode": "half_pixel_symmetric"}, "coordinate_transf"),
        ("- - sizes", [1, 10, 9, 9], {}, "the batch must stay what it is"),
    ],
)
def test_refusals(inputs: str, values: list[float], attributes: dict[str, object], reason: str) -> None:
    """In front of a layer, where the host cannot do it."""
    dtype = np.float32 if "scales" in inputs else np.int64
    constants = parameters(RANDOM) | {inputs.split()[-1]: np.array(values, dtype), "z_zero_point": np.int8(0)}
    names = "r h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point"
    nodes = [convolution("h"), node("Resize", f"h {inputs}", "r", **attributes), node("QLinearConv", names, "y")]
    with pytest.raises(UnsupportedOperatorError, match=rf"node 'r' \(Resize\): {reason}"):
        openmxu.compile(image_model(nodes, constants), CONFIG, strict=True)
