"""Blocks of transformers as ONNX nodes, from weights by the names that PyTorch gives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["OPSET", "Graph", "half_precision"]

OPSET = 20
"""The first one with Gelu."""

Weights = Mapping[str, NDArray[np.float32]]


class Graph:
    """Collects the nodes of a transformer; each method adds some and returns the name of what they make.

    Tensors are (batch, tokens, channels). Products have no bias, as in many language models.

    Parameters
    ----------
    weights
        By name; of a block called ``b``: ``b.first.weight`` and ``b.first.bias`` of the first LayerNormalization,
        ``b.second`` of the other one; ``b.query.weight``, ``b.key``, ``b.value`` and ``b.output`` of the attention,
        ``b.wide`` and ``b.narrow`` of the two products behind it, (outputs, inputs) each.
    heads
        Of every attention.
    """

    def __init__(self, weights: Weights, heads: int) -> None:
        self._weights = weights
        self._heads = heads
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray] = {}

    def node(self, operator: str, inputs: list[str], made: str, **attributes: object) -> str:
        """A node named after what it makes."""
        self.nodes.append(helper.make_node(operator, inputs, [made], name=made, **attributes))
        return made

    def constant(self, name: str, value: NDArray) -> str:
        """A constant."""
        self.constants[name] = value
        return name

    def weight(self, name: str) -> NDArray[np.float32]:
        """A weight as it was learned."""
        return self._weights[name].astype(np.float32)

    def dense(self, name: str, source: str, factor: float = 1.0) -> str:
        """A product with the weights ``name``."""
        weights = self.constant(f"{name}.weights", np.float32(factor) * self.weight(f"{name}.weight").T)
        return self.node("MatMul", [source, weights], name)

    def normalized(self, name: str, source: str) -> str:
        """LayerNormalization."""
        parameters = [self.constant(f"{name}.{kind}", self.weight(f"{name}.{kind}")) for kind in ("weight", "bias")]
        return self.node("LayerNormalization", [source, *parameters], name, axis=-1)

    def heads_of(self, name: str, source: str, tokens: int, order: list[int]) -> str:
        """(batch, tokens, heads, channels of a head) with its dimensions in another order."""
        shape = self.constant(f"heads of {tokens}", np.array([0, tokens, self._heads, -1]))
        apart = self.node("Reshape", [source, shape], f"{name}.apart")
        return self.node("Transpose", [apart], f"{name}.heads", perm=order)

    def merged(self, name: str, source: str, tokens: int) -> str:
        """The channels of all heads side by side again."""
        turned = self.node("Transpose", [source], f"{name}.turned", perm=[0, 2, 1, 3])
        shape = self.constant(f"merged {tokens}", np.array([0, tokens, -1]))
        return self.node("Reshape", [turned, shape], f"{name}.merged")

    def query(self, name: str, source: str, tokens: int, width: int) -> str:
        """Queries of all heads, divided by the root of a head's width."""
        return self.heads_of(f"{name}.query", self.dense(f"{name}.query", source, width**-0.5), tokens, [0, 2, 1, 3])

    def attended(self, name: str, queries: str, keys: str, values: str, tokens: int, added: str = "") -> str:
        """What each token attends to; ``added`` is a tensor that is added to the scores."""
        scores = self.node("MatMul", [queries, keys], f"{name}.scores")
        if added:
            scores = self.node("Add", [scores, added], f"{name}.biased")
        shares = self.node("Softmax", [scores], f"{name}.shares", axis=-1)
        result = self.node("MatMul", [shares, values], f"{name}.attended")
        return self.dense(f"{name}.output", self.merged(name, result, tokens))

    def sum(self, name: str, first: str, second: str) -> str:
        """The sum of two tensors."""
        return self.node("Add", [first, second], name)

    def widened(self, name: str, source: str) -> str:
        """The two products of a block with Gelu between them, added to their input."""
        wide = self.dense(f"{name}.wide", self.normalized(f"{name}.second", source))
        narrow = self.dense(f"{name}.narrow", self.node("Gelu", [wide], f"{name}.gelu"))
        return self.sum(f"{name}.result", source, narrow)

    def model(
        self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """The float32 model, checked."""
        initializers = [numpy_helper.from_array(value, key) for key, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, name, inputs, outputs, initializers)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, producer_name="openmxu", opset_imports=[opset], ir_version=9)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model, full_check=True)
        return model


def half_precision(weights: Weights) -> dict[str, NDArray[np.float16]]:
    """Weights as they are committed."""
    return {name: np.asarray(value, np.float16) for name, value in weights.items()}
