"""ONNX graphs of quantized tensors that are built node by node, each tensor with the values that ONNX Runtime
computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import helper

from scripts.random_models.models import make_model, random_bytes, reference

__all__ = ["OPSETS", "Case", "Graph", "Layer", "Network", "Quantization", "Tensor"]

OPSETS = (13, 15, 17, 18, 20, 21, 22, 23, 24, 25)
"""Opsets that ONNX Runtime supports, too."""

_APPROXIMATE = ("Add", "AveragePool", "BatchNormalization", "Div", "GlobalAveragePool", "Mul", "ReduceMean", "Sub")
"""Operators whose results may be one apart."""

MICROSOFT = "com.microsoft"
"""The domain of QLinearAdd and the other quantized operators that ONNX itself does not define."""


@dataclass(frozen=True)
class Quantization:
    """The real values of a tensor's bytes: ``(byte - zero_point) * scale``."""

    dtype: str
    scale: np.float32
    zero_point: int

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest byte."""
        limits = np.iinfo(self.dtype)
        return int(limits.min), int(limits.max)


@dataclass(frozen=True)
class Tensor:
    """A quantized tensor of a graph, with the bytes that ONNX Runtime computes for it."""

    name: str
    values: NDArray[np.integer]
    quantization: Quantization

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, batch included."""
        return self.values.shape

    @property
    def dtype(self) -> str:
        """The type of the bytes."""
        return self.quantization.dtype

    @property
    def real(self) -> NDArray[np.float64]:
        """The real values of the bytes."""
        return (self.values.astype(np.float64) - self.quantization.zero_point) * float(self.quantization.scale)


@dataclass(frozen=True)
class Case:
    """A model, values for its inputs, the only output as ONNX Runtime computes it, and one line about the model.

    ``is_optimized`` tells whether ONNX Runtime does so with its optimizer.
    """

    model: onnx.ModelProto
    inputs: dict[str, NDArray[np.integer]]
    expected: NDArray[np.generic]
    text: str
    is_optimized: bool = True


@dataclass(frozen=True)
class Layer:
    """The nodes that compute one quantized tensor from others."""

    output: Tensor
    nodes: tuple[onnx.NodeProto, ...]
    text: str

    @property
    def is_exact(self) -> bool:
        """Whether openmxu promises the same integers as ONNX Runtime."""
        return not any(node.op_type.removeprefix("QLinear") in _APPROXIMATE for node in self.nodes)


@dataclass(frozen=True)
class Network:
    """A case of several layers.

    Attributes
    ----------
    traced
        The model with the results of all layers as outputs.
    models
        One model for each layer, whose inputs are tensors of other layers.
    """

    case: Case
    traced: onnx.ModelProto
    layers: tuple[Layer, ...]
    models: tuple[onnx.ModelProto, ...]


class Graph:
    """A few quantized layers under construction; everything left open is chosen at random.

    Parameters
    ----------
    random
        The random generator.
    shape
        Shape of the first input, batch included.
    zero_point
        Zero point of the first input, counted from the smallest byte of its type: 0 to 255.
    powers_of_two
        Whether all scales are powers of two; results then often lie half way between two integers.
    """

    def __init__(
        self, random: np.random.Generator, shape: tuple[int, ...], dtype: str, zero_point: int, powers_of_two: bool
    ) -> None:
        self.random = random
        self._powers_of_two = powers_of_two
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, NDArray[np.generic]] = {}
        self._words: list[str] = []
        self._inputs: list[Tensor] = []
        self._layers: list[Layer] = []
        self._begun = 0
        self.varies = False
        self._opset, self._batch = 21, "batch"
        self.input = self.new_input(shape, dtype, zero_point)

    def vary(self, oldest: int) -> None:
        """Use any opset from ``oldest`` on, and fix the batch in a third of the models.

        Windows may leave their padding to ONNX.
        """
        self.varies = True
        self._opset = int(self.random.choice([version for version in OPSETS if version >= oldest]))
        self._batch = len(self.input.values) if self.chance(0.3) else "batch"

    @property
    def has_fixed_batch(self) -> bool:
        """Whether the model's inputs have a fixed batch."""
        return self._batch != "batch"

    def new_input(self, shape: tuple[int, ...], dtype: str, zero_point: int) -> Tensor:
        """Add an input."""
        values = random_bytes(self.random, dtype, shape)
        tensor = Tensor("x" * (len(self._inputs) + 1), values, self.any_quantization(dtype, zero_point))
        self._inputs.append(tensor)
        return tensor

    def any_quantization(self, dtype: str, zero_point: int) -> Quantization:
        """A random quantization for random bytes; ``zero_point`` is counted from the smallest byte."""
        scale = self.scale(np.exp(self.random.uniform(np.log(0.002), np.log(0.1))))
        return Quantization(dtype, np.float32(scale), zero_point + int(np.iinfo(dtype).min))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.random.random() < probability)

    def between(self, low: int, high: int) -> int:
        """A random integer, both limits included."""
        return int(self.random.integers(low, high + 1))

    def scale(self, value: ArrayLike) -> NDArray[np.float32]:
        """``value`` as float32, rounded to powers of two if the graph has such scales."""
        value = np.asarray(value, np.float64)
        return np.asarray(np.exp2(np.rint(np.log2(value))) if self._powers_of_two else value, np.float32)

    def fit(self, real: NDArray[np.float64], dtype: str, least: float = 1e-9) -> Quantization:
        """A random quantization under which most of ``real`` lies within the range of a byte, and fills much of it.

        Its scale is at least ``least``, even if ``real`` then fills less.
        """
        limits = np.iinfo(dtype)
        low, high = (float(value) for value in np.quantile(real, (0.05, 0.95)))
        steps = self.random.uniform(60, 240)
        span = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-6)
        while True:
            scale = self.scale(max(span / steps, least))
            first, last = np.ceil(limits.min - low / scale), np.floor(limits.max - high / scale)
            first, last = max(first, limits.min), min(last, limits.max)
            if first <= last:
                return Quantization(dtype, np.float32(scale), self.between(int(first), int(last)))
            steps *= 0.7

    def constant(self, array: ArrayLike) -> str:
        """Add a constant; returns its name."""
        name = f"c{len(self._constants)}"
        self._constants[name] = np.asarray(array)
        return name

    def add(self, operator: str, inputs: Sequence[str], domain: str = "", **attributes: object) -> str:
        """Add a node; returns the name of its output."""
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, domain=domain, **attributes))
        return name

    def add_several(self, operator: str, inputs: Sequence[str], outputs: int, **attributes: object) -> list[str]:
        """Add a node; returns the names of its outputs."""
        names = [f"t{len(self._nodes)}", *(f"t{len(self._nodes)} {index}" for index in range(1, outputs))]
        self._nodes.append(helper.make_node(operator, list(inputs), names, name=names[0], **attributes))
        return names

    def flat(self, source: Tensor) -> Tensor:
        """All elements of each batch element in a row."""
        return self.tensor(self.add("Flatten", [source.name]), source.quantization, "Flatten")

    def parameters(self, quantization: Quantization) -> list[str]:
        """Constants for scale and zero point."""
        zero_point = np.asarray(quantization.zero_point, quantization.dtype)
        return [self.constant(np.float32(quantization.scale)), self.constant(zero_point)]

    def dequantize(self, tensor: Tensor) -> str:
        """Add DequantizeLinear of ``tensor``; returns the name of its output."""
        return self.add("DequantizeLinear", [tensor.name, *self.parameters(tensor.quantization)])

    def quantize(self, real: str, quantization: Quantization) -> str:
        """Add QuantizeLinear of ``real``; returns the name of its output."""
        return self.add("QuantizeLinear", [real, *self.parameters(quantization)])

    def quantized(self, operator: str, sources: Sequence[Tensor], result: Quantization, **attributes: object) -> str:
        """ONNX Runtime's own quantized ``operator``: every source with its parameters, then those of the result."""
        inputs = [item for source in sources for item in (source.name, *self.parameters(source.quantization))]
        return self.add(f"QLinear{operator}", [*inputs, *self.parameters(result)], MICROSOFT, **attributes)

    def around(self, operator: str, sources: Sequence[Tensor], result: Quantization, **attributes: object) -> str:
        """A real ``operator`` between DequantizeLinear and QuantizeLinear."""
        real = self.add(operator, [self.dequantize(source) for source in sources], **attributes)
        return self.quantize(real, result)

    def tensor(self, name: str, quantization: Quantization, *words: object) -> Tensor:
        """The bytes called ``name``, computed by ONNX Runtime; ``words`` say how they were made."""
        self._words.append(" ".join(str(word) for word in words))
        tensor = Tensor(name, self._run(name, quantization.dtype), quantization)
        self._layers.append(Layer(tensor, tuple(self._nodes[self._begun :]), self._words[-1]))
        self._begun = len(self._nodes)
        return tensor

    def run_real(self, name: str) -> NDArray[np.float64]:
        """The real values called ``name``, computed by ONNX Runtime."""
        return self._run(name, "float32").astype(np.float64)

    def case(self, output: Tensor) -> Case:
        """The model built so far as a case, with the output ``output``."""
        shapes = " and ".join("×".join(map(str, item.shape)) for item in self._inputs)
        text = f"{self.input.dtype} {shapes}: {', '.join(self._words)}"
        return Case(self._model(output.name, output.dtype, output.shape[1:]), self._values(), output.values, text)

    def network(self, output: Tensor) -> Network:
        """The model built so far, layer by layer, with the output ``output``."""
        case = self.case(output)
        traced = onnx.ModelProto()
        traced.CopyFrom(case.model)
        del traced.graph.output[:]
        for layer in self._layers:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(layer.output.dtype))
            shape = [self._batch, *layer.output.shape[1:]]
            traced.graph.output.append(helper.make_tensor_value_info(layer.output.name, kind, shape))
        return Network(case, traced, tuple(self._layers), tuple(self._layer_model(layer) for layer in self._layers))

    def _layer_model(self, layer: Layer) -> onnx.ModelProto:
        """A model of one layer, whose inputs are tensors of the others or of the graph."""
        made = {name for node in layer.nodes for name in node.output}
        used = dict.fromkeys(name for node in layer.nodes for name in node.input)
        tensors = {item.name: item for item in (*self._inputs, *(layer.output for layer in self._layers))}
        inputs = [tensors[name] for name in used if name in tensors and name not in made]
        ports = [(item.name, item.dtype, item.shape[1:]) for item in inputs]
        constants = {name: self._constants[name] for name in used if name in self._constants}
        output = (layer.output.name, layer.output.dtype, layer.output.shape[1:])
        return make_model(layer.nodes, constants, ports, output, self._opset, self._batch)

    def _values(self) -> dict[str, NDArray[np.integer]]:
        return {item.name: item.values for item in self._inputs}

    def _model(self, name: str, dtype: str, shape: Sequence[int]) -> onnx.ModelProto:
        inputs = [(item.name, item.dtype, item.shape[1:]) for item in self._inputs]
        output = (name, dtype, shape)
        return make_model(self._nodes, self._constants, inputs, output, self._opset, self._batch)

    def _run(self, name: str, dtype: str) -> NDArray[np.integer]:
        model = self._model(name, dtype, ())
        model.graph.output[0].type.tensor_type.ClearField("shape")
        return reference(model, self._values())
