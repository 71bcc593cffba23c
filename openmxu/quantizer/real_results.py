"""Results of a model's last products as real numbers: the host computes the nodes after them, in float32.

A probability quantized to eight bits twice, as the function's input and as its result, would be off by some hundredths.
"""

from __future__ import annotations

import onnx

from openmxu.segments.bodies import readers_of

__all__ = ["keep_results_real", "nodes_behind_products"]

_ARRAY_OPERATORS = ("Conv", "Gemm", "GRU", "LSTM", "MatMul")


def nodes_behind_products(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes, other than products, that no product follows."""
    names: list[str] = []
    readers = readers_of(graph.node)
    for node in reversed(graph.node):
        following = [graph.node[number].name for name in node.output for number in readers.get(name, ())]
        if node.op_type not in _ARRAY_OPERATORS and all(name in names for name in following):
            names.append(node.name)
    return names


def keep_results_real(model: onnx.ModelProto, behind: list[str]) -> None:
    """Remove the quantization of those results of Gemm and MatMul that nodes ``behind`` all products, or the caller,
    read."""
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    readers, taken = readers_of(graph.node), list[str]()
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in makers:
            continue
        quantize = makers[node.input[0]]
        product = makers.get(quantize.input[0])
        if quantize.op_type != "QuantizeLinear" or product is None or product.op_type not in ("Gemm", "MatMul"):
            continue
        following = [graph.node[number].name for number in readers.get(node.output[0], ())]
        others = {number for name in (*quantize.output, *product.output) for number in readers.get(name, ())}
        if len(others) == 2 and all(name in behind for name in following):
            product.output[0] = node.output[0]
            taken += [quantize.name, node.name]
    kept = [node for node in graph.node if node.name not in taken]
    del graph.node[:]
    graph.node.extend(kept)
