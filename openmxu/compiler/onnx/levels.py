"""A graph cut into parts that host and device compute in turn, given which nodes are the host's.

Parts exchange integers wherever the graph has them: DequantizeLinear is computed by everyone who needs its result, and
QuantizeLinear by whoever makes what it quantizes. That is a quarter of the bytes, and ONNX Runtime finds on the host
the patterns that it replaces by integer operators of its own in the whole model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.segments.bodies import inputs_of

__all__ = ["Part", "cut"]


_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten")
"""Operators whose results are no smaller than what they are given, and no work to make again."""


@dataclass(frozen=True)
class Part:
    """Nodes that are computed without a break.

    Attributes
    ----------
    nodes
        Numbers of the nodes whose results others may use.
    repeated
        Numbers of nodes of earlier parts that are computed here once more: integers are exchanged rather than what
        these nodes make of them.
    needed, wanted
        Names of tensors from elsewhere, and of those that others use.
    passed_on
        Those that other parts of the device use.
    """

    is_device: bool
    nodes: tuple[int, ...]
    repeated: frozenset[int]
    needed: tuple[str, ...]
    wanted: tuple[str, ...]
    passed_on: frozenset[str]


def cut(view: GraphView, host: Collection[int]) -> list[Part]:
    """As few parts as possible: every node is computed as soon as the other side has done what it depends on.

    Parameters
    ----------
    host
        Numbers of nodes that the device refuses.
    """
    levels = _levels(view, host)
    members: dict[int, list[int]] = {}
    for index, level in levels.items():
        members.setdefault(level, []).append(index)
    parts = []
    wanted = {item.name for item in view.graph.output}
    passed_on: set[str] = set()
    for level, nodes in sorted(members.items(), reverse=True):
        working = _working(view, nodes, wanted)
        if working:
            repeated = _repeated(view, working, level, levels, host)
            needed = view.part({*working, *repeated})[1]
            made = _made(view, working, wanted)
            further = passed_on.intersection(made)
            is_device = _is_device(level)
            parts.append(Part(is_device, tuple(working), repeated, tuple(needed), tuple(made), frozenset(further)))
            wanted.update(needed)
            passed_on.update(needed if is_device else ())
    return parts[::-1]


def _levels(view: GraphView, host: Collection[int]) -> dict[int, int]:
    """For each node how often the computation changes sides before it; even levels are the host's."""
    levels: dict[int, int] = {}
    for index in view.working_nodes:
        node = view.graph.node[index]
        sources = [_source(view, name, host) for name in inputs_of(node)]
        before = [levels[source] for source in sources if source in levels]
        follows = view.converts(index, "DequantizeLinear", "QuantizeLinear") and index not in host
        if follows and before:
            levels[index] = before[0]
        else:
            own = 0 if index in host else 1
            levels[index] = max([own, *(level + (level - own) % 2 for level in before)])
    return levels


def _source(view: GraphView, name: str, host: Collection[int]) -> int | None:
    """The number of the node that makes a tensor, or the integers that it stands for."""
    maker = view.makers.get(name)
    while maker is not None and maker not in host and view.converts(maker, "DequantizeLinear"):
        maker = view.makers.get(view.graph.node[maker].input[0])
    return maker


def _is_device(level: int) -> bool:
    return level % 2 == 1


def _working(view: GraphView, nodes: Sequence[int], wanted: Collection[str]) -> list[int]:
    """Those of some nodes that others depend on."""
    used, working = set(wanted), []
    for index in reversed(nodes):
        node = view.graph.node[index]
        if not used.isdisjoint(set(node.output) - {""}):
            working.append(index)
            used.update(inputs_of(node))
    return working[::-1]


def _repeated(
    view: GraphView, nodes: Collection[int], level: int, levels: Mapping[int, int], host: Collection[int]
) -> frozenset[int]:
    """Nodes of earlier levels back to where their integers come from."""
    found: set[int] = set()
    waiting = list(nodes)
    while waiting:
        for name in inputs_of(view.graph.node[waiting.pop()]):
            maker = view.makers.get(name)
            if maker in found or maker in host or levels.get(maker, level) == level:
                continue
            is_cheap = view.converts(maker, "DequantizeLinear")
            if _is_device(level) and _is_device(levels[maker]):
                is_moved = not view.makes_integers(maker) or _only_moves(view, maker)
                is_cheap = is_moved and not view.is_array_work(maker)
            if is_cheap:
                found.add(maker)
                waiting.append(maker)
    return frozenset(found)


def _only_moves(view: GraphView, index: int) -> bool:
    """Whether QuantizeLinear makes again what DequantizeLinear was given, as many elements in another order."""
    maker = view.makers.get(view.graph.node[index].input[0])
    return view.converts(index, "QuantizeLinear") and maker is not None and view.graph.node[maker].op_type in _MOVES


def _made(view: GraphView, nodes: Collection[int], wanted: Collection[str]) -> list[str]:
    """The tensors made by some nodes that others want, outputs of the graph in their order first."""
    made = [name for index in nodes for name in view.graph.node[index].output if name in wanted]
    outputs = [item.name for item in view.graph.output if item.name in made]
    return list(dict.fromkeys([*outputs, *made]))
