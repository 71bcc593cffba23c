"""Which LSTM and GRU nodes are supported; quantizer and compiler ask the same question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

__all__ = ["GATES", "attributes_of", "unsupported_feature"]

GATES = {"LSTM": 4, "GRU": 3}
"""By operator; ONNX has the rows of W and R gate by gate."""

_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
_SEQUENCE_LENS, _PEEPHOLES = 4, 7


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name."""
    from onnx import helper

    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def unsupported_feature(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> str | None:
    """Why a recurrent node is not supported, ``None`` where it is."""
    direction = attributes.get("direction", b"forward").decode()
    if direction not in ("forward", "reverse"):
        return f"the direction must be forward or reverse, not {direction}: use a node for each"
    wanted = _ACTIVATIONS[node.op_type]
    found = tuple(item.decode().capitalize() for item in attributes.get("activations", []))
    if found and found != wanted:
        return f"activations must be {', '.join(wanted)}, not {', '.join(found)}"
    for name in ("activation_alpha", "activation_beta", "clip", "input_forget"):
        if attributes.get(name):
            return f"{name} is not supported"
    if len(node.input) > _SEQUENCE_LENS and node.input[_SEQUENCE_LENS]:
        return "sequence_lens is not supported: all sequences must have the same length"
    if node.op_type == "LSTM" and len(node.input) > _PEEPHOLES and node.input[_PEEPHOLES]:
        return "peepholes (input P) are not supported"
    return None
