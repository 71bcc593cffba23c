"""What is wrong with a graph as a whole, told with the node where it shows: ONNX's checker would not name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError
from openmxu.compiler.operators.builder import node_name
from openmxu.segments.bodies import bodies_of, inputs_of

if TYPE_CHECKING:
    import onnx

__all__ = ["check_structure"]

_OLDEST_OPSET = 10
"""The first one with QuantizeLinear."""


def check_structure(model: onnx.ModelProto) -> None:
    """Check versions of operators, and that every tensor is there before it is used.

    Raises
    ------
    ModelError
        A tensor is missing, nodes are out of order or in a circle, or ONNX does not know the version of its operators.
    """
    import onnx

    _check_names(model.graph)
    for entry in model.opset_import:
        newest = onnx.defs.onnx_opset_version()
        if entry.domain in ("", "ai.onnx") and not _OLDEST_OPSET <= entry.version <= newest:
            raise ModelError(
                f"the model's opset is {entry.version}, but the installed onnx {onnx.__version__} and openmxu know "
                f"{_OLDEST_OPSET} to {newest}; onnx.version_converter converts models"
            )
    graph = model.graph
    for item in graph.input:
        if not item.type.tensor_type.HasField("shape"):
            raise ModelError(f"input {item.name!r} has no shape; give it a batch and fixed dimensions behind that")
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    there = {item.name for items in (graph.input, graph.initializer) for item in items}
    there |= {item.values.name for item in graph.sparse_initializer}
    for index, node in enumerate(graph.node):
        for name in inputs_of(node):
            if name and name not in there:
                raise ModelError(f"node {node_name(node)!r} ({node.op_type}) {_missing(graph, makers, index, name)}")
        there.update(node.output)


def _check_names(graph: onnx.GraphProto) -> None:
    """Check that names are text: of a damaged file protobuf makes bytes of those that are not."""
    items = (*graph.input, *graph.output, *graph.initializer)
    names = [item.name for item in items]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
        for body in bodies_of(node):
            _check_names(body)
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"the model is damaged: the name {name!r} is no text")


def _missing(graph: onnx.GraphProto, makers: dict[str, int], index: int, name: str) -> str:
    """Why node number ``index`` cannot have tensor ``name``."""
    if name not in makers:
        return f"uses {name!r}, which is no initializer and no input, and which no node makes: the file lacks it"
    maker = graph.node[makers[name]]
    waiting, seen = [makers[name]], set()
    while waiting:
        number = waiting.pop()
        if number == index:
            return f"uses {name!r}, which is made from its own output: the graph has a cycle; cut it"
        if number not in seen:
            seen.add(number)
            waiting += [makers[item] for item in inputs_of(graph.node[number]) if item in makers]
    return f"uses {name!r}, which {node_name(maker)!r} ({maker.op_type}) makes only behind it; sort the nodes"
