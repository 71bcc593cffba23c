"""Every layer of a quantized model alone, fed with what ONNX Runtime computes in front of it.

A layer goes from integers to the next ones. ONNX Runtime computes it with its optimizations, as it does by default, and
without: where its own two results differ, no third one can be equal to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from openmxu.comparison.noise import quantization_noise
from openmxu.compiler import CompileError, import_model
from openmxu.compiler.ir.operations import Pooling
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.model_file import opset_of
from openmxu.compiler.onnx.shape_arithmetic import resolve_shapes
from openmxu.segments.graph_runner import GraphRunner, with_outputs

__all__ = ["LayerResult", "compare_layers"]

_CONVERSIONS = ("DequantizeLinear", "QuantizeLinear")
_CELLS = ("GRU", "LSTM")


@dataclass(frozen=True)
class LayerResult:
    """What a layer makes, compared with ONNX Runtime.

    Attributes
    ----------
    name, kind
        Its last operator that computes, and all operators in it.
    outputs
        The number of its integers.
    differing
        Those that differ from both results of ONNX Runtime.
    ambiguous
        Those that are equal to one of ONNX Runtime's results, which differ.
    sqnr
        Signal to quantization noise of ONNX Runtime's own integers in dB: 10 log10(Σ x² ÷ Σ (x - q)²), with the float
        model's x. It has the errors of all layers before in it. ``None`` where the float model has no such tensor.
    is_rounded
        It reads or makes int16, and no number is more than 1 apart from ONNX Runtime's.
    """

    name: str
    kind: str
    outputs: int
    differing: int
    ambiguous: int
    sqnr: float | None = None
    is_rounded: bool = False

    @property
    def reason(self) -> str:
        """Why numbers differ; empty if none do."""
        if self.differing and any(cell in self.kind.split() for cell in _CELLS):
            return "ONNX has no integer form of recurrent cells, and the device's is its own"
        if self.differing and self.is_rounded:
            return "ONNX Runtime computes layers of int16 in float32, and the device with exact sums: at most 1 apart"
        if self.differing:
            return "this is a defect of openmxu: please report it with the model"
        return "ONNX Runtime's results with and without its optimizer differ here" if self.ambiguous else ""


def compare_layers(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[np.generic]], float_model: onnx.ModelProto | None = None
) -> list[LayerResult]:
    """Compute every layer that the device computes alone.

    Raises
    ------
    CompileError
        The model's batch is no dimension of its own, so that layers cannot be taken out.
    GraphError
        ONNX Runtime cannot compute a model.
    """
    resolved = resolve_shapes(model)
    view = GraphView.of(resolved.graph, opset_of(resolved))
    values = _intermediates(resolved, view, inputs)
    noise = {} if float_model is None else quantization_noise(view, values, float_model, inputs)
    results = []
    for nodes, output in _layers(view):
        layer = _layer_model(resolved, view, nodes, output, values)
        try:
            imported = import_model(layer, strict=True)
        except CompileError:
            continue
        if any(isinstance(item, Pooling) and item.has_ties for item in imported.networks[0].operations):
            continue  # the host's, in a model with other work for the device
        given = {item.name: values[item.name] for item in layer.graph.input}
        ours = imported.evaluate(given)[output]
        optimized, plain = (
            GraphRunner(layer.SerializeToString(), optimize=optimize).run(given)[0] for optimize in (True, False)
        )
        computing = [view.graph.node[index] for index in nodes if view.graph.node[index].op_type not in _CONVERSIONS]
        same = optimized == plain
        apart = np.minimum(*(np.abs(ours.astype(np.int64) - other) for other in (optimized, plain)))
        has_words = any(array.dtype == np.int16 for array in (*given.values(), ours))
        results.append(
            LayerResult(
                name=computing[-1].name or computing[-1].output[0] if computing else output,
                kind=" ".join(node.op_type for node in computing) or "other scale",
                outputs=ours.size,
                differing=int(((ours != optimized) & (same | (ours != plain))).sum()),
                ambiguous=int(((ours != optimized) & ~same & (ours == plain)).sum()),
                sqnr=noise.get(output),
                is_rounded=has_words and int(apart.max(initial=0)) <= 1,
            )
        )
    return results


def _intermediates(
    model: onnx.ModelProto, view: GraphView, inputs: Mapping[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """All integers between layers, as ONNX Runtime computes them."""
    names = [
        name
        for index in view.working_nodes
        for name in view.graph.node[index].output
        if name and view.makes_integers(index)
    ]
    results = GraphRunner(with_outputs(model, names).SerializeToString(), optimize=True).run(inputs)
    return {**inputs, **dict(zip(names, results, strict=True))}


def _layers(view: GraphView) -> Iterator[tuple[list[int], str]]:
    """The nodes of each layer, and the integers that it makes."""
    for last in view.working_nodes:
        if not view.makes_integers(last):
            continue
        nodes, waiting = {last}, [last]
        while waiting:
            for name in view.graph.node[waiting.pop()].input:
                maker = view.makers.get(name)
                if maker is None or maker in view.constant_nodes or maker in nodes or view.makes_integers(maker):
                    continue
                nodes.add(maker)
                waiting.append(maker)
        yield sorted(nodes), next(name for name in view.graph.node[last].output if name)


def _layer_model(
    model: onnx.ModelProto, view: GraphView, nodes: list[int], output: str, values: dict[str, NDArray[np.generic]]
) -> onnx.ModelProto:
    numbers, needed, constants = view.part(nodes)
    ports = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(values[name].dtype), ["batch", *values[name].shape[1:]]
        )
        for name in needed
    ]
    graph = helper.make_graph(
        [view.graph.node[number] for number in numbers],
        "layer",
        ports,
        [onnx.ValueInfoProto(name=output)],
        [item for item in model.graph.initializer if item.name in constants],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)
