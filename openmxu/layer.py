"""Layers: the parts of a network, to which the instructions of its program belong."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layer"]


@dataclass(frozen=True)
class Layer:
    """An operation of the device: an ONNX node, or several nodes fused into one.

    Attributes
    ----------
    name
        Names of its nodes, joined by ``+``.
    kind
        The kind of operation, in one word.
    multiply_adds
        Useful multiplications of one execution, padding not counted.
    """

    name: str
    kind: str
    multiply_adds: int
