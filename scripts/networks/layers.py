"""The layers of a quantized model as separate models."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import helper

__all__ = ["LayerModel", "layer_models", "with_all_outputs"]

_MOVES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that compute nothing."""

_INEXACT = frozenset({"Add", "AveragePool", "GlobalAveragePool", "Mul"})
"""Operators whose results may be 1 apart."""


@dataclass(frozen=True)
class LayerModel:
    """A layer between quantized tensors.

    Attributes
    ----------
    name
        Names of its nodes that compute.
    model
        Reads tensors of the whole model by their names, and makes one of them.
    inputs, output
        Names of these tensors.
    is_exact
        Whether every result must be ONNX Runtime's; otherwise it may be 1 apart.
    """

    name: str
    model: onnx.ModelProto
    inputs: tuple[str, ...]
    output: str
    is_exact: bool


def layer_models(model: onnx.ModelProto) -> list[LayerModel]:
    """Every layer of a quantized model that reads quantized tensors and produces one.

    Nodes before the first QuantizeLinear and after the last one run on the host, and are left out.
    """
    return _Cutter(model).layers()


def with_all_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """The model with these quantized tensors as additional outputs."""
    types = _types(model)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    own = {item.name for item in model.graph.output}
    result.graph.output.extend(types[name] for name in names if name not in own)
    return result


def _types(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return {item.name: item for item in (*graph.value_info, *graph.output)}


class _Cutter:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._constants = {item.name: item for item in model.graph.initializer}
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._inputs = {item.name for item in model.graph.input}
        self._types = _types(model)

    def layers(self) -> list[LayerModel]:
        layers = []
        cuts: set[str] = set()
        for node in self._model.graph.node:
            if node.op_type != "QuantizeLinear":
                continue
            sources, nodes = self._reach(node, cuts)
            computing = [item for item in nodes if item.op_type not in ("QuantizeLinear", "DequantizeLinear", *_MOVES)]
            if self._inputs & set(sources):
                cuts.add(node.output[0])
            elif computing:
                layers.append(self._layer(sources, nodes, computing, node.output[0]))
                cuts.add(node.output[0])
        return layers

    def _reach(self, last: onnx.NodeProto, cuts: set[str]) -> tuple[list[str], list[onnx.NodeProto]]:
        """The quantized tensors that a node depends on, and the nodes between them and it."""
        sources: dict[str, None] = {}
        nodes: dict[str, onnx.NodeProto] = {last.name: last}
        waiting = list(last.input)
        while waiting:
            name = waiting.pop()
            if name in cuts or name in self._inputs:
                sources[name] = None
            elif name in self._makers and self._makers[name].name not in nodes:
                maker = self._makers[name]
                nodes[maker.name] = maker
                waiting.extend(maker.input)
        order = [node for node in self._model.graph.node if node.name in nodes]
        return list(sources), order

    def _layer(
        self, sources: list[str], nodes: list[onnx.NodeProto], computing: list[onnx.NodeProto], output: str
    ) -> LayerModel:
        used = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "layer",
            [self._types[name] for name in sources],
            [self._types[output]],
            [item for name, item in self._constants.items() if name in used],
        )
        model = helper.make_model(graph, opset_imports=self._model.opset_import, ir_version=self._model.ir_version)
        return LayerModel(
            name="+".join(node.name for node in computing),
            model=model,
            inputs=tuple(sources),
            output=output,
            is_exact=not any(node.op_type in _INEXACT for node in computing),
        )
