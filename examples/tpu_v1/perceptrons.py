"""MLP0 and MLP1: dense layers with Relu, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from examples.tpu_v1.graph import Graph, Workload

__all__ = ["mlp0", "mlp1"]


def mlp0() -> Workload:
    """Five dense layers, as wide as eight tiles; 2.4 % of their tiles' weights are padding, as in the paper."""
    return _perceptron("mlp0", 200, (2000, 2048, 2048, 2048, 2048, 1600), seed=0)


def mlp1() -> Workload:
    """Four dense layers, of which 11 % are padding, as in the paper."""
    return _perceptron("mlp1", 168, (1200, 1200, 1200, 1200, 512), seed=1)


def _perceptron(name: str, batch: int, features: Sequence[int], seed: int) -> Workload:
    """Dense layers from each number of features to the next one. Input ``features``, int8 (batch, features[0])."""
    graph = Graph(seed)
    tensor = graph.input("features", features[0])
    for outputs in features[1:]:
        tensor = graph.dense(tensor, outputs)
    graph.output(tensor)
    return graph.workload(name, batch)
