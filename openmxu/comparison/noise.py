"""How far the quantized tensors of a model are from those of the float model that it was made of."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray

from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.segments.graph_runner import GraphRunner, with_outputs

__all__ = ["quantization_noise"]

_SUFFIX = "_QuantizeLinear_Input"
"""ONNX Runtime's quantizer appends it to the name of a tensor whose own name its quantized form takes."""


def quantization_noise(
    view: GraphView,
    values: Mapping[str, NDArray[np.generic]],
    float_model: onnx.ModelProto,
    inputs: Mapping[str, NDArray[np.generic]],
) -> dict[str, float]:
    """The signal to quantization noise ratio in dB of each quantized tensor, by its name.

    Parameters
    ----------
    view
        The quantized model.
    values
        Its integers between layers.
    float_model
        Tensors are found in it by the names of what QuantizeLinear reads.
    inputs
        Of both models.
    """
    made = {name for node in float_model.graph.node for name in node.output}
    sources = {}
    for index in view.working_nodes:
        node = view.graph.node[index]
        name = node.input[0].removesuffix(_SUFFIX) if node.input else ""
        if node.op_type == "QuantizeLinear" and view.converts(index, "QuantizeLinear") and name in made:
            sources[node.output[0]] = (name, node)
    names = sorted({name for name, _ in sources.values()})
    if not names:
        return {}
    runner = GraphRunner(with_outputs(float_model, names).SerializeToString(), optimize=True)
    reals = dict(zip(names, runner.run(inputs), strict=True))
    return {
        output: _decibels(reals[name], _dequantized(view, node, values[output]))
        for output, (name, node) in sources.items()
    }


def _dequantized(view: GraphView, node: onnx.NodeProto, integers: NDArray[np.generic]) -> NDArray[np.float64]:
    scale, zero = (view.constants[name].array if name in view.constants else np.zeros(()) for name in node.input[1:3])
    return (integers.astype(np.float64) - zero.astype(np.float64)) * scale.astype(np.float64)


def _decibels(reals: NDArray[np.generic], quantized: NDArray[np.float64]) -> float:
    signal = reals.astype(np.float64)
    noise = float(np.square(signal - quantized.reshape(signal.shape)).sum())
    power = float(np.square(signal).sum())
    return 10 * math.log10(power / noise) if power and noise else math.inf if not noise else -math.inf
