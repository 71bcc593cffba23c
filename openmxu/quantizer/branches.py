"""What the bodies of If, Loop and Scan read from outside, kept for them.

ONNX Runtime's optimizer drops constants that only a body reads. Its quantizer gives names to other tensors that it
believes nobody reads, the sums before a Relu for example.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from openmxu.segments.bodies import bodies_of, captured_by, own_names

__all__ = ["hand_over", "own_constants"]


def own_constants(graph: onnx.GraphProto) -> None:
    """Give every body copies of the constants that it takes from ``graph``."""
    constants = {item.name: item for item in graph.initializer}
    for body in (body for node in graph.node for body in bodies_of(node)):
        names = {name: f"{name} in {body.name}" for name in captured_by(body) if name in constants}
        for name, own in names.items():
            copy = body.initializer.add()
            copy.CopyFrom(constants[name])
            copy.name = own
        _rename(body, names)
        own_constants(body)


def hand_over(graph: onnx.GraphProto) -> None:
    """Let every body read results of ``graph`` from nodes of their own."""
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    bodies = [body for node in graph.node for body in bodies_of(node)]
    names = {name: f"{name} for bodies" for body in bodies for name in captured_by(body) if name in makers}
    for body in bodies:
        _rename(body, names)
    for name, other in sorted(names.items(), key=lambda item: -makers[item[0]]):
        graph.node.insert(makers[name] + 1, helper.make_node("Identity", [name], [other], name=other))


def _rename(body: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Let a body, and those within it, read tensors under other names, unless they have such names of their own."""
    hidden = own_names(body)
    names = {name: own for name, own in names.items() if name not in hidden}
    for node in body.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for inner in bodies_of(node):
            _rename(inner, names)
