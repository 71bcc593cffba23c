"""Convolutions: QLinearConv, Conv between DequantizeLinear and QuantizeLinear, and ConvInteger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scripts.random_models.graph import Graph, Quantization, Tensor
from scripts.random_models.models import random_bytes
from scripts.random_models.shapes import Window, log_uniform, random_window

__all__ = ["FORMS", "convolve", "real_convolution", "sum_products"]

FORMS = ("QLinearConv", "Conv")


@dataclass(frozen=True)
class _Kernels:
    """Weights (outputs, channels of a group, *kernel) and how they are applied.

    ``scale`` is a scalar or one per output, as ``zero_point`` is.
    """

    weights: NDArray[np.integer]
    zero_point: NDArray[np.integer]
    scale: NDArray[np.float32]
    window: Window
    groups: int

    @property
    def centred(self) -> NDArray[np.float64]:
        """Weights minus their zero points."""
        per_output = (-1, *(1,) * (self.weights.ndim - 1)) if self.zero_point.ndim else ()
        return self.weights.astype(np.float64) - self.zero_point.astype(np.float64).reshape(per_output)

    def attributes(self) -> dict[str, object]:
        return {**self.window.attributes(), **({"group": self.groups} if self.groups > 1 else {})}

    def __str__(self) -> str:
        outputs, inputs = self.weights.shape[:2]
        channels = "channel" if self.scale.ndim else "tensor"
        return f"{outputs}×{inputs}×{self.window} groups {self.groups} {self.weights.dtype} per {channels}"


def convolve(graph: Graph, source: Tensor, form: str, limit: str = "", same_shape: bool = False) -> Tensor:
    """A convolution of ``source`` that ONNX Runtime computes with an integer kernel.

    Parameters
    ----------
    form
        ``QLinearConv``, or ``Conv`` between DequantizeLinear and QuantizeLinear.
    limit
        ``Relu`` or ``Clip``: the operator between Conv and QuantizeLinear. The smallest byte means 0 then, and the
        largest at most 6; ONNX Runtime would compute in float32 otherwise.
    same_shape
        Whether the result has the shape of ``source``.
    """
    kernels = _random_kernels(graph, source, same_shape)
    unit = (source.quantization.scale * kernels.scale).astype(np.float32)
    mean, deviation = _statistics(source, kernels)
    bias = None
    if limit or graph.chance(0.8):
        result, bias = _centre(graph, source.dtype, mean, deviation, unit, limit)
    else:
        samples = (mean + deviation * graph.random.standard_normal((200, len(mean)))) * unit
        result = graph.fit(samples, source.dtype)
    parts = [graph.constant(array) for array in (kernels.weights, kernels.scale, kernels.zero_point)]
    if form == "QLinearConv":
        inputs = [source.name, *graph.parameters(source.quantization), *parts, *graph.parameters(result)]
        inputs += [] if bias is None else [graph.constant(bias)]
        name = graph.add("QLinearConv", inputs, **kernels.attributes())
    else:
        axis = {"axis": 0} if kernels.scale.ndim else {}
        reals = [graph.dequantize(source), graph.add("DequantizeLinear", parts, **axis)]
        if bias is not None:
            parts = [graph.constant(bias), graph.constant(unit), graph.constant(np.zeros(unit.shape, np.int32))]
            reals.append(graph.add("DequantizeLinear", parts, **axis))
        real = graph.add("Conv", reals, **kernels.attributes())
        if limit:
            bounds = [graph.constant(np.float32(bound)) for bound in (0, 6)] if limit == "Clip" else []
            real = graph.add(limit, [real, *bounds])
        name = graph.quantize(real, result)
    return graph.tensor(name, result, form, kernels, limit)


def real_convolution(graph: Graph, source: Tensor) -> tuple[str, NDArray[np.float64], float]:
    """Conv of dequantized tensors whose result is not quantized yet: its name, its values, and the scale of its
    sums."""
    kernels = _random_kernels(graph, source, same_shape=False)
    parts = [graph.constant(array) for array in (kernels.weights, kernels.scale, kernels.zero_point)]
    axis = {"axis": 0} if kernels.scale.ndim else {}
    reals = [graph.dequantize(source), graph.add("DequantizeLinear", parts, **axis)]
    name = graph.add("Conv", reals, **kernels.attributes())
    return name, graph.run_real(name), float(np.max(source.quantization.scale * kernels.scale))


def sum_products(graph: Graph) -> Tensor:
    """ConvInteger with its int32 sums."""
    source = graph.input
    kernels = _random_kernels(graph, source, same_shape=False, integers_only=True)
    zero_point = np.asarray(source.quantization.zero_point, source.dtype)
    inputs = [source.name, *(graph.constant(array) for array in (kernels.weights, zero_point, kernels.zero_point))]
    name = graph.add("ConvInteger", inputs, **kernels.attributes())
    return graph.tensor(name, Quantization("int32", np.float32(1), 0), "ConvInteger", kernels)


def _random_kernels(graph: Graph, source: Tensor, same_shape: bool, integers_only: bool = False) -> _Kernels:
    random = graph.random
    groups, inputs, outputs = _channels(graph, source.shape[1], same_shape)
    if same_shape:
        window = Window.same((1, 3)[graph.between(0, 1)], len(source.shape) - 2)
    else:
        window = random_window(random, source.shape[2:], 5, dilated=True, automatic=graph.varies)
    # ONNX Runtime has an integer kernel for int8 by uint8 only where the sums are the output.
    types = ("int8",) if source.dtype == "int8" and not integers_only else ("uint8", "int8")
    weights = random_bytes(random, types[graph.between(0, len(types) - 1)], (outputs, inputs, *window.kernel))
    channels = (outputs,) if graph.chance(0.5) and not integers_only else ()
    zero_point = random_bytes(random, weights.dtype.name, channels)
    if channels and graph.chance(0.5):
        zero_point[:] = zero_point[0]
    return _Kernels(weights, zero_point, graph.scale(random.uniform(0.002, 0.02, channels)), window, groups)


def _channels(graph: Graph, channels: int, same: bool) -> tuple[int, int, int]:
    """Groups, input channels of a group, and output channels."""
    choice = graph.random.random()
    if choice < 0.2:  # depthwise
        return channels, 1, channels * (1 if same else graph.between(1, 2))
    divisors = [count for count in range(2, channels) if channels % count == 0]
    groups = divisors[graph.between(0, len(divisors) - 1)] if choice < 0.4 and divisors else 1
    outputs = channels if same else groups * log_uniform(graph.random, max(40 // groups, 1))
    return groups, channels // groups, outputs


def _statistics(source: Tensor, kernels: _Kernels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of every output's sums, away from the padding."""
    values = source.values - float(source.quantization.zero_point)
    weights = kernels.centred.reshape(len(kernels.weights), -1)
    deviation = values.std() * np.sqrt((weights**2).sum(axis=1))
    return values.mean() * weights.sum(axis=1), np.maximum(deviation, 1)


def _centre(
    graph: Graph,
    dtype: str,
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    unit: NDArray[np.float32],
    limit: str,
) -> tuple[Quantization, NDArray[np.int32]]:
    """Any zero point, and a bias that moves the sums of every output to the middle of the bytes' range."""
    low = int(np.iinfo(dtype).min)
    zero_point = low if limit else low + graph.between(0, 255)
    steps = graph.random.uniform(20, 60)  # bytes that one standard deviation covers
    scale = float(graph.scale(float((deviation * unit).mean()) / steps))
    if limit == "Clip":
        scale = min(scale, 6 / 255)
    middle = low + 255 * graph.random.uniform(0.3, 0.7, mean.shape) - zero_point
    bias = np.rint(middle * scale / unit.astype(np.float64) - mean)
    return Quantization(dtype, np.float32(scale), zero_point), np.clip(bias, -(2**30), 2**30).astype(np.int32)
