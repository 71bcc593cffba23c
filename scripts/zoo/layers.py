"""Every layer of a quantized model alone, fed with what ONNX Runtime computes in front of it.

A layer goes from integers to the next ones. ONNX Runtime computes it with its optimizations, as it does by default, and
without: where its own two results differ, no third one can be equal to both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from openmxu.compiler import CompileError, import_model
from openmxu.compiler.ir.operations import Pooling
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.model_file import opset_of
from openmxu.compiler.onnx.shape_arithmetic import resolve_shapes
from openmxu.segments.graph_runner import GraphRunner

__all__ = ["LayerCounts", "compare_layers"]

_CONVERSIONS = ("DequantizeLinear", "QuantizeLinear")


@dataclass
class LayerCounts:
    """Outputs of layers by the operators in them.

    Attributes
    ----------
    outputs
        All of them.
    differing
        Those that differ from both results of ONNX Runtime.
    ambiguous
        Those that are equal to one of ONNX Runtime's results, which differ.
    """

    outputs: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    ambiguous: Counter[str] = field(default_factory=Counter)

    def add(self, other: LayerCounts) -> None:
        """Add up the counts of another network."""
        self.outputs += other.outputs
        self.differing += other.differing
        self.ambiguous += other.ambiguous


def compare_layers(model: onnx.ModelProto, inputs: dict[str, NDArray[np.generic]]) -> LayerCounts:
    """Compute every layer that the device computes alone."""
    resolved = resolve_shapes(model)
    view = GraphView.of(resolved.graph, opset_of(resolved))
    values = _intermediates(resolved, view, inputs)
    counts = LayerCounts()
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
        operators = [view.graph.node[index].op_type for index in nodes]
        kind = " ".join(item for item in operators if item not in _CONVERSIONS) or "other scale"
        same = optimized == plain
        counts.outputs[kind] += ours.size
        counts.differing[kind] += int(((ours != optimized) & (same | (ours != plain))).sum())
        counts.ambiguous[kind] += int(((ours != optimized) & ~same & (ours == plain)).sum())
    return counts


def _intermediates(
    model: onnx.ModelProto, view: GraphView, inputs: dict[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """All integers between layers, as ONNX Runtime computes them."""
    names = [
        name
        for index in view.working_nodes
        for name in view.graph.node[index].output
        if name and view.makes_integers(index)
    ]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    results = GraphRunner(copy.SerializeToString(), optimize=True).run(inputs)
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
