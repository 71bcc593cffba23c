"""Sums that the host can compute without being asked for more than it computes anyway."""

from __future__ import annotations

from collections.abc import Collection

from openmxu.compiler.onnx.graph_view import GraphView

__all__ = ["host_sums"]


def host_sums(view: GraphView, sums: Collection[int], host: Collection[int]) -> set[int]:
    """Those of some sums of two tensors that only the host uses, and of which the device makes one part at most.

    So they move as many bytes where the host computes them, as ONNX Runtime does. Around the blocks of a transformer
    the host normalizes what such sums make, and adds it to what the next block makes.

    Parameters
    ----------
    sums
        Numbers of nodes of the device.
    host
        Numbers of the host's nodes.
    """
    users: dict[str, list[int]] = {}
    for index in view.working_nodes:
        for name in view.graph.node[index].input:
            users.setdefault(name, []).append(index)
    outputs = {item.name for item in view.graph.output}
    found = set(sums)
    while True:
        left = {
            index
            for index in found
            if not _is_used_by(view, index, {*host, *found}, users, outputs)
            or _made_elsewhere(view, index, {*host, *found}) > 1
        }
        if not left:
            return found
        found -= left


def _is_used_by(
    view: GraphView, index: int, host: Collection[int], users: dict[str, list[int]], outputs: Collection[str]
) -> bool:
    """Whether only some nodes use what a node makes, or the integers that it becomes."""
    (name,) = view.graph.node[index].output
    following = users.get(name, [])
    if name in outputs or not following:
        return False
    return all(
        other in host
        or (
            view.converts(other, "QuantizeLinear", "DequantizeLinear")
            and _is_used_by(view, other, host, users, outputs)
        )
        for other in following
    )


def _made_elsewhere(view: GraphView, index: int, host: Collection[int]) -> int:
    """How many inputs are made by the device."""
    makers = [view.makers.get(name) for name in view.graph.node[index].input]
    for place, maker in enumerate(makers):
        while maker is not None and maker not in host and view.converts(maker, "QuantizeLinear", "DequantizeLinear"):
            maker = view.makers.get(view.graph.node[maker].input[0])
        makers[place] = maker
    return sum(maker is not None and maker not in {*host, *view.constant_nodes} for maker in makers)
