"""Networks as lists of layers, and their float ONNX models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = [
    "Conv",
    "Dense",
    "Flatten",
    "GlobalAverage",
    "Layer",
    "MaxPool",
    "Normalize",
    "Parameters",
    "Relu",
    "Residual",
    "Softmax",
    "float_model",
]

_OPSET = 17

Parameters = Mapping[str, NDArray[np.float32]]
"""Weights by the names that PyTorch gives them: the number of the layer, a dot, ``weight``, ``bias``,
``running_mean`` or ``running_var``; within a Residual ``body`` or ``shortcut`` and the number of the layer there."""


@dataclass(frozen=True)
class Conv:
    """A convolution with ``outputs`` channels; without bias where a Normalize follows it."""

    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0
    bias: bool = True


@dataclass(frozen=True)
class Normalize:
    """BatchNormalization."""


@dataclass(frozen=True)
class Relu:
    """max(x, 0)."""


@dataclass(frozen=True)
class MaxPool:
    """The maximum of each window of ``size`` × ``size`` positions, which do not overlap."""

    size: int


@dataclass(frozen=True)
class GlobalAverage:
    """The average of each channel, (batch, channels)."""


@dataclass(frozen=True)
class Flatten:
    """Channels, rows and columns as one dimension."""


@dataclass(frozen=True)
class Dense:
    """A matrix product with bias."""

    outputs: int


@dataclass(frozen=True)
class Softmax:
    """Probabilities of classes."""


@dataclass(frozen=True)
class Residual:
    """The sum of what ``body`` and ``shortcut`` make of the input; an empty shortcut is the input itself."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()


Layer = Conv | Normalize | Relu | MaxPool | GlobalAverage | Flatten | Dense | Softmax | Residual


def float_model(
    layers: Sequence[Layer], shape: tuple[int, ...], parameters: Parameters, name: str, output: str = "scores"
) -> onnx.ModelProto:
    """The ONNX model of a network.

    Parameters
    ----------
    shape
        Of one input, channels first.
    parameters
        Of every layer.

    Returns
    -------
    A float32 model with the input ``image``, (batch, *shape), and one output.
    """
    writer = _Writer(parameters)
    writer.write(layers, "image", "")
    writer.nodes[-1].output[0] = output
    graph = helper.make_graph(
        writer.nodes,
        name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, key) for key, array in writer.constants.items()],
    )
    model = helper.make_model(
        graph, producer_name="openmxu", opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8
    )
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


class _Writer:
    """Collects nodes and constants; what a layer makes is called as the layer."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[np.float32]] = {}

    def write(self, layers: Sequence[Layer], source: str, path: str) -> str:
        """Append layers that read ``source``; the name of what the last one makes."""
        for number, layer in enumerate(layers):
            source = self._layer(layer, source, f"{path}{number}")
        return source

    def _layer(self, layer: Layer, source: str, path: str) -> str:
        match layer:
            case Conv():
                kinds = ("weight", "bias") if layer.bias else ("weight",)
                kernel, pads, strides = [layer.kernel] * 2, [layer.padding] * 4, [layer.stride] * 2
                return self._node("Conv", path, source, kinds, kernel_shape=kernel, pads=pads, strides=strides)
            case Normalize():
                return self._node("BatchNormalization", path, source, ("weight", "bias", "running_mean", "running_var"))
            case Relu():
                return self._node("Relu", path, source)
            case MaxPool():
                size = [layer.size] * 2
                return self._node("MaxPool", path, source, kernel_shape=size, strides=size)
            case GlobalAverage():
                return self._node("Flatten", path, self._node("GlobalAveragePool", f"{path}.plane", source))
            case Flatten():
                return self._node("Flatten", path, source)
            case Dense():
                return self._node("Gemm", path, source, ("weight", "bias"), transB=1)
            case Softmax():
                return self._node("Softmax", path, source, axis=1)
            case Residual():
                body = self.write(layer.body, source, f"{path}.body.")
                shortcut = self.write(layer.shortcut, source, f"{path}.shortcut.")
                name = self._node("Add", path, body)
                self.nodes[-1].input.append(shortcut)
                return name

    def _node(self, operator: str, path: str, source: str, kinds: Sequence[str] = (), **attributes: object) -> str:
        names = [f"{path}.{kind}" for kind in kinds]
        self.constants.update({name: np.asarray(self._parameters[name], np.float32) for name in names})
        name = f"{operator.lower()}_{path}"
        self.nodes.append(helper.make_node(operator, [source, *names], [name], name=name, **attributes))
        return name
