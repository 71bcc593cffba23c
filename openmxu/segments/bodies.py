"""Bodies of If, Loop and Scan: graphs within a node, which read tensors from outside without being given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

__all__ = ["bodies_of", "captured_by", "inputs_of", "own_names", "readers_of", "with_bodies"]


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs within a node; they are not copied."""
    found = []
    for attribute in node.attribute:
        found += [attribute.g] if attribute.HasField("g") else []
        found += attribute.graphs
    return found


def inputs_of(node: onnx.NodeProto) -> list[str]:
    """Names of all tensors that a node needs: its inputs, empty ones included, and what its bodies read."""
    return [*node.input, *(name for body in bodies_of(node) for name in captured_by(body))]


def with_bodies(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A node, and all those within it."""
    yield node
    for body in bodies_of(node):
        for inner in body.node:
            yield from with_bodies(inner)


def readers_of(nodes: Sequence[onnx.NodeProto]) -> dict[str, list[int]]:
    """By the name of a tensor, the numbers of the nodes that need it."""
    readers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        for name in inputs_of(node):
            readers.setdefault(name, []).append(number)
    return readers


def own_names(body: onnx.GraphProto) -> set[str]:
    """Names of what a body is given, holds or makes."""
    own = {item.name for item in (*body.input, *body.initializer)}
    own.update(name for node in body.node for name in node.output)
    return own


def captured_by(body: onnx.GraphProto) -> list[str]:
    """Names from outside of what a body reads."""
    own = own_names(body)
    used = [*(name for node in body.node for name in inputs_of(node)), *(item.name for item in body.output)]
    return [name for name in dict.fromkeys(used) if name and name not in own]
