"""ONNX models from files and bytes, and whether they are valid."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["check_model", "first_line", "load_model", "opset_of"]


_AXIS_OPERATORS = ("DequantizeLinear", "QuantizeLinear")
_AXIS_OPSET = 13
"""The first one in which these operators have an axis."""


def load_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """The model of a file, of the bytes of one, or the given model itself.

    Raises
    ------
    ModelError
        There is no model, or not all of it.
    OSError
        The file cannot be read.
    """
    import onnx
    from google.protobuf.message import DecodeError

    if isinstance(model, onnx.ModelProto):
        return model
    name = "the model" if isinstance(model, bytes) else os.fspath(model)
    try:
        # Whatever the file is called: onnx would read other formats by the ending of the name.
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(name, format="protobuf")
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"{name} is no ONNX model, or truncated: {first_line(error)}") from None
    if not proto.HasField("graph"):
        raise ModelError(f"{name} is no ONNX model, or truncated: it holds no graph")
    return proto


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators in a model."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def check_model(model: onnx.ModelProto) -> None:
    """Let ONNX's checker look at a model.

    Two things that exporters leave are no errors: outputs without a type or a shape, and scales for each channel before
    opset 13, which ONNX Runtime's quantizer writes.

    Raises
    ------
    ModelError
        It is not valid.
    """
    import onnx

    try:
        onnx.checker.check_model(_tolerated(model))
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"the model is not valid ONNX: {first_line(error)}") from None


def _tolerated(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, or a copy without what the checker would stop at if there is any of it."""
    import onnx

    version = opset_of(model)
    axes = [
        index
        for index, node in enumerate(model.graph.node)
        if version < _AXIS_OPSET and node.op_type in _AXIS_OPERATORS and _has_axis(node)
    ]
    incomplete = [
        index
        for index, item in enumerate(model.graph.output)
        if not item.HasField("type") or (item.type.HasField("tensor_type") and not _has_shape(item))
    ]
    if not axes and not incomplete:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for index in axes:
        node = copy.graph.node[index]
        kept = [attribute for attribute in node.attribute if attribute.name != "axis"]
        del node.attribute[:]
        node.attribute.extend(kept)
    for index in incomplete:
        tensor = copy.graph.output[index].type.tensor_type
        tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
        tensor.shape.SetInParent()
    return copy


def _has_axis(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "axis" for attribute in node.attribute)


def _has_shape(item: onnx.ValueInfoProto) -> bool:
    return item.type.tensor_type.HasField("shape")


def first_line(error: Exception) -> str:
    """What an error of a library says, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
