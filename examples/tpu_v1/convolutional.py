"""CNN0, which chooses moves of Go, and CNN1, which classifies images."""

from __future__ import annotations

from examples.tpu_v1.graph import Graph, Tensor, Workload

__all__ = ["cnn0", "cnn1"]

_CHANNELS = 256

_BRANCH = 192
"""Channels of each branch of a module: three quarters of the array's columns."""


def cnn0() -> Workload:
    """The policy network of a Go program: 48 planes of 19 × 19 points, a convolution of 5 × 5, thirteen of 3 × 3, and
    two of 1 × 1. All have 256 channels but the last one, whose only channel is the output."""
    graph = Graph(seed=4)
    tensor = graph.input("board", 48, 19, 19)
    for kernel in (5, *[3] * 13, 1):
        tensor = graph.convolution(tensor, _CHANNELS, kernel)
    graph.output(graph.convolution(tensor, 1, 1))
    return graph.workload("cnn0", 8)


def cnn1() -> Workload:
    """Modules of parallel branches in the manner of Inception v2, wider, and four dense layers.

    The first convolution is 8 × 8 with a stride of 4, because 64 pixels of three colors fit into a row of 256 bytes. As
    in Inception v2, three modules have 28 × 28 positions, five 14 × 14 and two 7 × 7, and the last module of the first
    and of the second kind halves the plane. Two maxima at the end leave 2 × 2 positions.
    """
    graph = Graph(seed=5)
    tensor = graph.convolution(graph.input("image", 3, 224, 224), 128, 8, 4)
    tensor = graph.convolution(tensor, 128, 1)
    tensor = graph.maximum(graph.convolution(tensor, _BRANCH, 3), 3, 2)
    for modules in (2, 4):
        for _ in range(modules):
            tensor = _module(graph, tensor)
        tensor = _halving_module(graph, tensor)
    for _ in range(2):
        tensor = _module(graph, tensor)
    tensor = graph.convolution(tensor, 3072, 1)
    tensor = graph.flat(graph.maximum(graph.maximum(tensor, 3, 2), 2, 2))
    for outputs in (4096, 4096, 2816):
        tensor = graph.dense(tensor, outputs)
    graph.output(graph.dense(tensor, 1000, ""))
    return graph.workload("cnn1", 32)


def _module(graph: Graph, source: Tensor) -> Tensor:
    """Four branches side by side: 1 × 1; 3 × 3; two of 3 × 3; and a maximum.

    Branches of the maximum come in the middle: the activation unit takes it while the array works on other branches.
    """
    pooled, point, single, double = (graph.convolution(source, _BRANCH, 1) for _ in range(4))
    single = graph.convolution(single, _BRANCH, 3)
    double = graph.convolution(double, _BRANCH, 3)
    pooled = graph.maximum(pooled, 3, 1)
    double = graph.convolution(double, _BRANCH, 3)
    return graph.joined(point, single, double, pooled)


def _halving_module(graph: Graph, source: Tensor) -> Tensor:
    """Three branches of half as many rows and columns side by side; that of the maximum has half of the channels."""
    single, double = (graph.convolution(source, _BRANCH, 1) for _ in range(2))
    double = graph.convolution(double, _BRANCH, 3)
    pooled = graph.maximum(source, 3, 2)
    single = graph.convolution(single, _BRANCH, 3, 2)
    double = graph.convolution(double, _BRANCH, 3, 2)
    return graph.joined(single, double, graph.convolution(pooled, 2 * _BRANCH, 1))
