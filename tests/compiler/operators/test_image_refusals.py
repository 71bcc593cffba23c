"""Networks on images that cannot be compiled raise errors of one line that name the node."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import openmxu
from openmxu import ModelError, UnsupportedOperatorError
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import CHANNELS, HEIGHT, WIDTH, image_model, parameters

VALUES = parameters(np.random.default_rng(0)) | {
    "vector": np.ones(CHANNELS, np.float32),
    "planes": np.ones((1, CHANNELS, 1, 1), np.float32),
    "rows": np.ones((HEIGHT, 1), np.float32),
    "half": np.float32(0.5),
    "square": np.ones((CHANNELS, CHANNELS, 1, 1), np.int8),
    "yes": np.array(True),
    "matrix": np.ones((WIDTH, 5), np.int8),
    "last": np.array([3]),
    "fewer": np.array([0, 0, 0, -1, 0, 0, 0, 0]),
}
POOL = {"kernel_shape": [3, 3]}


def conv(**attributes: object) -> onnx.NodeProto:
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    return node("QLinearConv", names, "y", **attributes)


def real_conv(*behind: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "sums"), *behind]


def followed(nodes: list[onnx.NodeProto], channels: int = 10) -> onnx.ModelProto:
    """``nodes``, with the quantized output ``z``, and a convolution, so that the host cannot compute ``nodes``."""
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


def between(*middle: onnx.NodeProto, last: str = "n") -> onnx.ModelProto:
    """A convolution of ``x`` to real ``f_real``, then ``middle``, and another convolution."""
    names = "x x_scale x_zero_point square v_scale v_zero_point h_scale h_zero_point"
    first = [node("QLinearConv", names, "f"), dequantize("f", "h")]
    quantizing = [] if last == "z" else [quantize(last, "z", "h")]
    return followed([*first, *middle, *quantizing], CHANNELS)


STATISTICS = "vector vector vector vector"

UNSUPPORTED = {
    "padding found where strides skip rows": (
        image_model([node("MaxPool", "x", "y", kernel_shape=[1, 1], strides=[3, 1], auto_pad="SAME_UPPER")], VALUES),
        r"node 'y' \(MaxPool\): auto_pad SAME_UPPER with strides larger than the kernel is not supported; give pads",
    ),
    "constants of rows": (
        between(node("Add", "f_real rows", "n")),
        r"node 'n' \(Add\): its inputs must be int8, uint8 or int16, with one scale each",
    ),
    "quotient of constants": (
        between(node("Div", "planes f_real", "n")),
        r"node 'n' \(Div\): supported: a tensor by a constant with at most one value for each channel",
    ),
    "training of BatchNormalization": (
        between(node("BatchNormalization", f"f_real {STATISTICS}", "n", training_mode=1)),
        r"node 'n' \(BatchNormalization\): training is not supported",
    ),
    "statistics that vary": (
        between(node("BatchNormalization", "f_real vector vector planes vector", "n")),
        r"node 'n' \(BatchNormalization\): its mean must be a constant with a value for each channel",
    ),
    "training of Dropout": (
        between(node("Dropout", "f_real half yes", "n")),
        r"node 'n' \(Dropout\): training is not supported",
    ),
    "16-bit integers": (
        between(node("QuantizeLinear", "f_real h_scale", "z", output_dtype=TensorProto.UINT16), last="z"),
        r"node 'z' \(QuantizeLinear\): the output must be uint8, int8 or int16, not uint16",
    ),
    "mean of rows": (
        between(node("ReduceMean", "f_real last", "n")),
        r"node 'n' \(ReduceMean\): supported over all dimensions but the batch and one other",
    ),
    "sum of three": (
        between(node("Sum", "f_real f_real f_real", "n")),
        r"node 'n' \(Sum\): supported: the sum of two tensors, not of 3",
    ),
    "constant in Concat": (
        between(node("Concat", "f_real planes", "n", axis=2)),
        r"node 'n' \(Concat\): supported on int8 and uint8 tensors",
    ),
    "less than nothing of padding": (
        between(node("Pad", "f_real fewer", "n")),
        r"node 'n' \(Pad\): negative numbers of elements",
    ),
    "order that varies": (
        between(node("Cast", "f_real", "i", to=TensorProto.INT64), node("Gather", "f_real i", "n", axis=1)),
        r"node 'i' \(Cast\): supported: int32 sums to float32, and types that stay what they are",
    ),
    "indices": (with_indices(), r"node 'y' \(MaxPool\): the indices of the maxima"),
    "dilated average": (
        between(node("AveragePool", "f_real", "n", dilations=[2, 1], **POOL)),
        r"node 'n' \(AveragePool\): pooling with dilations",
    ),
    "dilated maximum of sums": (
        image_model(
            [
                *(dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "c")),
                *(node("MaxPool", "c", "m", dilations=[2, 1], **POOL), quantize("m", "z", "h")),
                node("QLinearConv", "z h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y"),
            ],
            VALUES,
        ),
        r"node 'm' \(MaxPool\): pooling with dilations is supported on int8 and uint8, not behind Conv",
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
    "maximum of planes of sums of rows": (
        followed(
            [
                *(dequantize("x"), dequantize("matrix", "v"), node("MatMul", "x_real matrix_real", "sums")),
                *(node("GlobalMaxPool", "sums", "m"), quantize("m", "z", "h")),
            ],
            CHANNELS,
        ),
        r"node 'm' \(GlobalMaxPool\): supported on int8 and uint8 through DequantizeLinear, and behind Conv",
    ),
    "maximum of a plane wider than the registers": (
        image_model(
            [dequantize("x"), node("GlobalMaxPool", "x_real", "m"), quantize("m", "y", "y")], VALUES, shape=(2, 65_536)
        ),
        r"node 'm' \(GlobalMaxPool\): planes of more than 65535 rows or columns are not supported",
    ),
    "average of a plane wider than the registers": (
        image_model(
            [dequantize("x"), node("GlobalAveragePool", "x_real", "a"), quantize("a", "y", "y")],
            VALUES,
            shape=(2, 65_536),
        ),
        r"node 'a' \(GlobalAveragePool\): planes of more than 65535 rows or columns are not supported",
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
        openmxu.compile(proto, openmxu.Config(), strict=True)
    assert "\n" not in str(caught.value)
