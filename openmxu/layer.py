"""Layers: the parts of a network that instructions of its program belong to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layer"]


@dataclass(frozen=True)
class Layer:
    """An operation as the device does it: an ONNX node, or several of them in one.

    Attributes
    ----------
    name
        Of its nodes, joined by ``+``.
    kind
        What it does, in a word.
    multiply_adds
        Useful multiplications of one execution, padding not counted.
    """

    name: str
    kind: str
    multiply_adds: int
