"""Quantized ONNX graphs with random weights, built layer by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Graph", "Tensor", "Workload"]

_OPSET, _IR_VERSION = 17, 8

_REACH = 4
"""Standard deviations that the range of a byte covers. Random layers keep that of the values at about 1."""

_STEPS = 32
"""Standard deviation of the integers of random weights."""


@dataclass(frozen=True)
class Tensor:
    """A quantized tensor of the graph, int8, whose real values are ``scale`` × (integer - ``zero_point``).

    Attributes
    ----------
    shape
        Without the batch: (features,), or (channels, height, width).
    """

    name: str
    shape: tuple[int, ...]
    scale: float = _REACH / 127
    zero_point: int = 0


@dataclass(frozen=True)
class Workload:
    """A quantized model of the TPU paper's kind.

    Attributes
    ----------
    model
        Inputs and outputs are int8; the batch is open.
    batch
        Elements of one execution.
    layers
        How many layers it has of each kind: ``dense``, ``convolution``, ``vector`` and ``pooling``.
    weights
        Weights of all layers, biases not counted.
    multiply_adds
        Of one element of the batch.
    """

    model: onnx.ModelProto
    batch: int
    layers: dict[str, int]
    weights: int
    multiply_adds: int


class Graph:
    """A graph under construction. Every layer ends in QuantizeLinear, and what it makes is int8.

    Weights are normally distributed, and so wide that values neither vanish nor saturate. There is no bias: the
    activation unit adds one in any case.

    Parameters
    ----------
    seed
        Of the weights.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._layers: Counter[str] = Counter()
        self._weights = self._multiply_adds = 0

    def input(self, name: str, *shape: int) -> Tensor:
        """Add an input."""
        self._inputs.append(Tensor(name, shape))
        return self._inputs[-1]

    def output(self, tensor: Tensor) -> None:
        """Make a tensor an output."""
        self._outputs.append(tensor)

    def dense(self, source: Tensor, outputs: int, function: str = "Relu") -> Tensor:
        """A matrix product of (features,) to (outputs,), and a function of one number; none if it is empty."""
        (inputs,) = source.shape
        weights = self._random_weights((inputs, outputs), inputs)
        self._multiply_adds += inputs * outputs
        return self._layer("dense", self._node("MatMul", [self._real(source), weights]), (outputs,), function)

    def convolution(self, source: Tensor, outputs: int, kernel: int, stride: int = 1) -> Tensor:
        """A convolution to ``outputs`` channels with Relu, and a padding of ⌊(kernel - 1) ÷ 2⌋ on every side."""
        inputs, height, width = source.shape
        weights = self._random_weights((outputs, inputs, kernel, kernel), inputs * kernel**2)
        pad = (kernel - 1) // 2
        shape = (outputs, *((length + 2 * pad - kernel) // stride + 1 for length in (height, width)))
        self._multiply_adds += inputs * kernel**2 * int(np.prod(shape))
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        name = self._node("Conv", [self._real(source), weights], **attributes)
        return self._layer("convolution", name, shape, "Relu")

    def maximum(self, source: Tensor, kernel: int, stride: int) -> Tensor:
        """The maximum of each window, with a padding of ⌊(kernel - 1) ÷ 2⌋ on every side."""
        channels, height, width = source.shape
        pad = (kernel - 1) // 2
        shape = (channels, *((length + 2 * pad - kernel) // stride + 1 for length in (height, width)))
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        self._layers["pooling"] += 1
        return Tensor(self._node("MaxPool", [source.name], **attributes), shape, source.scale, source.zero_point)

    def add(self, one: Tensor, other: Tensor) -> Tensor:
        """The sum of two tensors of a shape."""
        return self._layer("vector", self._node("Add", [self._real(one), self._real(other)]), one.shape)

    def multiply(self, one: Tensor, other: Tensor) -> Tensor:
        """The product of two tensors of a shape."""
        return self._layer("vector", self._node("Mul", [self._real(one), self._real(other)]), one.shape)

    def tanh(self, source: Tensor) -> Tensor:
        """The hyperbolic tangent of each element."""
        return self._layer("vector", self._node("Tanh", [self._real(source)]), source.shape, scale=1 / 127)

    def joined(self, *sources: Tensor) -> Tensor:
        """Tensors one behind the other along their features or channels."""
        first = sources[0]
        total = sum(source.shape[0] for source in sources)
        if len({(source.scale, source.zero_point) for source in sources}) == 1:
            name = self._node("Concat", [source.name for source in sources], axis=1)
            return Tensor(name, (total, *first.shape[1:]), first.scale, first.zero_point)
        real = self._node("Concat", [self._real(source) for source in sources], axis=1)
        return self._layer("", real, (total, *first.shape[1:]))

    def flat(self, source: Tensor) -> Tensor:
        """Channels, rows and columns as one dimension."""
        size = int(np.prod(source.shape))
        return Tensor(self._node("Flatten", [source.name]), (size,), source.scale, source.zero_point)

    def workload(self, name: str, batch: int) -> Workload:
        """The model built so far."""
        inputs, outputs = (
            [helper.make_tensor_value_info(item.name, TensorProto.INT8, ["batch", *item.shape]) for item in items]
            for items in (self._inputs, self._outputs)
        )
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        imports = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, producer_name="openmxu", opset_imports=imports, ir_version=_IR_VERSION)
        return Workload(model, batch, dict(self._layers), self._weights, self._multiply_adds)

    def _layer(
        self, kind: str, real: str, shape: tuple[int, ...], function: str = "", scale: float = _REACH / 127
    ) -> Tensor:
        """Quantize what a layer makes, behind a function of one number."""
        if kind:
            self._layers[kind] += 1
        zero_point = 0
        if function == "Relu":
            real = self._node(function, [real])
            scale, zero_point = _REACH / 255, -128
        elif function:
            argument = self._node("QuantizeLinear", [real, *self._parameters(scale, 0)])
            real = self._node(function, [self._real(Tensor(argument, shape, scale))])
            scale = 1 / 127
        name = self._node("QuantizeLinear", [real, *self._parameters(scale, zero_point)])
        return Tensor(name, shape, scale, zero_point)

    def _random_weights(self, shape: tuple[int, ...], inputs: int) -> str:
        """The real values of weights, for sums of so many inputs."""
        integers = np.clip(np.rint(self._random.standard_normal(shape, np.float32) * _STEPS), -127, 127)
        self._weights += integers.size
        scale = self._constant(np.float32(np.sqrt(2 / inputs) / _STEPS))
        return self._node("DequantizeLinear", [self._constant(integers.astype(np.int8)), scale])

    def _real(self, tensor: Tensor) -> str:
        return self._node("DequantizeLinear", [tensor.name, *self._parameters(tensor.scale, tensor.zero_point)])

    def _parameters(self, scale: float, zero_point: int) -> list[str]:
        return [self._constant(np.float32(scale)), self._constant(np.int8(zero_point))]

    def _constant(self, value: ArrayLike) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, operator: str, inputs: list[str], **attributes: object) -> str:
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name
