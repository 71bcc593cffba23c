"""Quantized ONNX graphs with random weights, built layer by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper, numpy_helper

__all__ = ["Graph", "Tensor", "Workload"]

_OPSET, _IR_VERSION = 21, 10
"""The first ones whose QuantizeLinear has int16."""

_REACH = 4
"""Standard deviations that the range of a type covers. Random layers keep that of the values at about 1."""

_STEPS = {"int8": 32, "int16": 24}
"""Standard deviation of the integers of random weights, by the type of the layer's inputs. Of int16, 2,560 inputs that
all are as large as possible must give a sum that fits int32: weights of 32 would not."""


@dataclass(frozen=True)
class Tensor:
    """A quantized tensor of the graph, whose real values are ``scale`` × (integer - ``zero_point``).

    Attributes
    ----------
    shape
        Without the batch: (features,), or (channels, height, width).
    dtype
        int8 or int16.
    """

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    dtype: str


@dataclass(frozen=True)
class Workload:
    """A quantized model of the TPU paper's kind.

    Attributes
    ----------
    model
        Inputs and outputs are int8, or int16; the batch is open.
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
    """A graph under construction. Every layer ends in QuantizeLinear.

    Weights are normally distributed int8, and so wide that values neither vanish nor saturate. There is no bias: the
    activation unit adds one in any case.

    Parameters
    ----------
    seed
        Of the weights.
    dtype
        Of inputs and of what layers make, int8 or int16. Functions of one number have tables, for bytes, and make int8.
    """

    def __init__(self, seed: int, dtype: str = "int8") -> None:
        self._random = np.random.default_rng(seed)
        self._dtype = dtype
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._layers: Counter[str] = Counter()
        self._weights = self._multiply_adds = 0

    def input(self, name: str, *shape: int) -> Tensor:
        """Add an input."""
        self._inputs.append(Tensor(name, shape, self._step(self._dtype), 0, self._dtype))
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
        return replace(source, name=self._node("MaxPool", [source.name], **attributes), shape=shape)

    def add(self, one: Tensor, other: Tensor) -> Tensor:
        """The sum of two tensors of a shape."""
        return self._layer("vector", self._node("Add", [self._real(one), self._real(other)]), one.shape)

    def multiply(self, one: Tensor, other: Tensor) -> Tensor:
        """The product of two tensors of a shape."""
        return self._layer("vector", self._node("Mul", [self._real(one), self._real(other)]), one.shape)

    def tanh(self, source: Tensor) -> Tensor:
        """The hyperbolic tangent of each element."""
        real = self._real(source)
        if source.dtype != "int8":
            real = self._real(self._quantized(real, source.shape, self._step("int8"), 0, "int8"))
        self._layers["vector"] += 1
        return self._quantized(self._node("Tanh", [real]), source.shape, 1 / 127, 0, "int8")

    def joined(self, *sources: Tensor) -> Tensor:
        """Tensors one behind the other along their features or channels."""
        first = sources[0]
        total = sum(source.shape[0] for source in sources)
        if len({(source.scale, source.zero_point, source.dtype) for source in sources}) == 1:
            name = self._node("Concat", [source.name for source in sources], axis=1)
            return replace(first, name=name, shape=(total, *first.shape[1:]))
        real = self._node("Concat", [self._real(source) for source in sources], axis=1)
        return self._layer("", real, (total, *first.shape[1:]))

    def flat(self, source: Tensor) -> Tensor:
        """Channels, rows and columns as one dimension."""
        size = int(np.prod(source.shape))
        return replace(source, name=self._node("Flatten", [source.name]), shape=(size,))

    def workload(self, name: str, batch: int) -> Workload:
        """The model built so far."""
        inputs, outputs = (
            [
                helper.make_tensor_value_info(
                    item.name, helper.np_dtype_to_tensor_dtype(np.dtype(item.dtype)), ["batch", *item.shape]
                )
                for item in items
            ]
            for items in (self._inputs, self._outputs)
        )
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        imports = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, producer_name="openmxu", opset_imports=imports, ir_version=_IR_VERSION)
        return Workload(model, batch, dict(self._layers), self._weights, self._multiply_adds)

    @staticmethod
    def _step(dtype: str) -> float:
        """The scale of values of either sign."""
        return _REACH / np.iinfo(dtype).max

    def _layer(self, kind: str, real: str, shape: tuple[int, ...], function: str = "") -> Tensor:
        """Quantize what a layer makes, behind a function of one number."""
        if kind:
            self._layers[kind] += 1
        dtype, scale, zero_point = self._dtype, self._step(self._dtype), 0
        if function == "Relu":
            real = self._node(function, [real])
            if dtype == "int8":
                scale, zero_point = _REACH / 255, -128
        elif function:
            argument = self._quantized(real, shape, self._step("int8"), 0, "int8")
            real = self._node(function, [self._real(argument)])
            dtype, scale = "int8", 1 / 127
        return self._quantized(real, shape, scale, zero_point, dtype)

    def _quantized(self, real: str, shape: tuple[int, ...], scale: float, zero_point: int, dtype: str) -> Tensor:
        name = self._node("QuantizeLinear", [real, *self._parameters(scale, zero_point, dtype)])
        return Tensor(name, shape, scale, zero_point, dtype)

    def _random_weights(self, shape: tuple[int, ...], inputs: int) -> str:
        """The real values of weights, for sums of so many inputs."""
        steps = _STEPS[self._dtype]
        integers = np.clip(np.rint(self._random.standard_normal(shape, np.float32) * steps), -127, 127)
        self._weights += integers.size
        scale = self._constant(np.float32(np.sqrt(2 / inputs) / steps))
        return self._node("DequantizeLinear", [self._constant(integers.astype(np.int8)), scale])

    def _real(self, tensor: Tensor) -> str:
        parameters = self._parameters(tensor.scale, tensor.zero_point, tensor.dtype)
        return self._node("DequantizeLinear", [tensor.name, *parameters])

    def _parameters(self, scale: float, zero_point: int, dtype: str) -> list[str]:
        return [self._constant(np.float32(scale)), self._constant(np.asarray(zero_point, dtype))]

    def _constant(self, value: ArrayLike) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, operator: str, inputs: list[str], **attributes: object) -> str:
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name
