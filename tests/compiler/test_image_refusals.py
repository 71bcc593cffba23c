"""What cannot be compiled of networks on images is refused in one line that names the node."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import openmxu
from openmxu import ModelError, UnsupportedOperatorError
from tests.compiler.graphs import dequantize, node, quantize
from tests.compiler.images import CHANNELS, HEIGHT, WIDTH, image_model, parameters

VALUES = parameters(np.random.default_rng(0))
POOL = {"kernel_shape": [3, 3]}


def conv(**attributes: object) -> onnx.NodeProto:
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    return node("QLinearConv", names, "y", **attributes)


def real_conv(*behind: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "sums"), *behind]


def followed(nodes: list[onnx.NodeProto], channels: int = 10) -> onnx.ModelProto:
    """``nodes``, which make the bytes ``z``, and a convolution: the host computes nothing before a layer."""
    names = "z h_scale h_zero_point k v_scale v_zero_point y_scale y_zero_point"
    return image_model([*nodes, node("QLinearConv", names, "y")], VALUES | {"k": np.ones((2, channels, 1, 1), np.int8)})


def contributed(operator: str, inputs: str, **attributes: object) -> onnx.NodeProto:
    made = node(operator, inputs, "y", **attributes)
    made.domain = "com.microsoft"
    return made


def average(**attributes: object) -> list[onnx.NodeProto]:
    return [dequantize("x"), node("AveragePool", "x_real", "a", **attributes), quantize("a", "y", "y")]


def with_indices() -> onnx.ModelProto:
    pool = node("MaxPool", "x", "y", **POOL)
    pool.output.append("indices")
    return image_model([pool], {})


TWO_IMAGES = [("z", "uint8", (CHANNELS, HEIGHT, WIDTH + 1))]
SUM = "x x_scale x_zero_point z x_scale x_zero_point y_scale y_zero_point"

UNSUPPORTED = {
    "indices": (with_indices(), r"node 'y' \(MaxPool\): the indices of the maxima"),
    "dilated maximum": (
        image_model([node("MaxPool", "x", "y", dilations=[2, 1], **POOL)], {}),
        r"node 'y' \(MaxPool\): pooling with dilations",
    ),
    "stride": (image_model([conv(strides=[256, 1])], VALUES), r"node 'y' \(QLinearConv\): strides above 255"),
    "plane": (
        image_model([conv()], VALUES, shape=(CHANNELS, 3, 40_000)),
        r"node 'y' \(QLinearConv\): planes of more than 32767",
    ),
    "windows in the padding": (
        image_model(average(kernel_shape=[2, 2], pads=[0, 0, 3, 0]), VALUES),
        r"node 'a' \(AveragePool\): windows that lie in the padding",
    ),
    "two ways to count": (
        image_model(average(ceil_mode=1, count_include_pad=1, **POOL), VALUES),
        r"node 'a' \(AveragePool\): count_include_pad and ceil_mode exclude each other",
    ),
    "channels last": (
        image_model(
            [contributed("QLinearGlobalAveragePool", "x x_scale x_zero_point y_scale y_zero_point", channels_last=1)],
            VALUES,
        ),
        r"node 'y' \(QLinearGlobalAveragePool\): channels_last",
    ),
    "function of sums": (
        followed([*real_conv(), node("Sigmoid", "sums", "s"), quantize("s", "z", "h")]),
        r"node 's' \(Sigmoid\): supported on int8 and uint8 through DequantizeLinear",
    ),
    "average of sums": (
        followed([*real_conv(), node("GlobalAveragePool", "sums", "a"), quantize("a", "z", "h")]),
        r"node 'a' \(GlobalAveragePool\): input 0 must be int8 or uint8 through DequantizeLinear",
    ),
    "different shapes": (
        image_model([contributed("QLinearAdd", SUM)], VALUES, more=TWO_IMAGES),
        r"node 'y' \(QLinearAdd\): its inputs' shapes \(6, 9, 11\) and \(6, 9, 12\) do not fit",
    ),
    "constant that does not fit": (
        image_model([contributed("QLinearAdd", SUM)], VALUES | {"z": np.zeros((4, 1), np.uint8)}),
        r"node 'y' \(QLinearAdd\): a constant of shape \(4, 1\) does not fit \(6, 9, 11\)",
    ),
    "functions that are added": (
        image_model(
            [
                *(dequantize("x"), node("Tanh", "x_real", "f")),
                *(node("DequantizeLinear", "z h_scale h_zero_point", "z_real"), node("Add", "f z_real", "a")),
                quantize("a", "y", "y"),
            ],
            VALUES,
            more=[("z", "uint8", (CHANNELS, HEIGHT, WIDTH))],
        ),
        r"node 'a' \(Add\): functions of its inputs must be quantized first",
    ),
    "real operand": (
        image_model(
            [dequantize("x"), node("Mul", "x_real v", "p"), quantize("p", "y", "y")], VALUES | {"v": np.ones(11, "f4")}
        ),
        r"node 'p' \(Mul\): its inputs must be int8 or uint8",
    ),
}

INVALID = {
    "window larger than its input": (
        image_model([conv(dilations=[5, 1])], VALUES),
        "node 'y': the window of 11 × 3 is larger than its input",
    ),
    "groups": (image_model([conv(group=2)], VALUES), "node 'y': 10 × 6 channels in 2 groups do not fit 6"),
    "kernel": (
        image_model([conv(kernel_shape=[2, 3])], VALUES),
        r"node 'y': kernel_shape is \[2, 3\], but the kernel \[3, 3\]",
    ),
    "pads": (
        image_model([conv(pads=[1, 1, -1, 1])], VALUES),
        "node 'y': pads must have 4 values that are not negative",
    ),
    "strides": (image_model([conv(strides=[1])], VALUES), "node 'y': strides must have 2 values, not 1"),
    "bias": (
        image_model([conv()], VALUES | {"b": np.zeros(9, np.int32)}),
        "node 'y': the bias must be int32 with a value for each output channel",
    ),
    "dimensions of the weights": (
        image_model([conv()], VALUES | {"w": np.zeros((10, CHANNELS, 3), np.int8)}),
        r"node 'y': weights of shape \(10, 6, 3\) for an input of shape \(6, 9, 11\)",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_use(name: str) -> None:
    refuse(*UNSUPPORTED[name], UnsupportedOperatorError)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_use(name: str) -> None:
    refuse(*INVALID[name], ModelError)


def refuse(proto: onnx.ModelProto, message: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=message) as caught:
        openmxu.compile(proto, openmxu.Config())
    assert "\n" not in str(caught.value)
