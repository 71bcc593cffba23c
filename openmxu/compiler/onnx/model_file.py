"""ONNX models from files and bytes, and whether they are valid."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["check_model", "first_line", "load_model"]


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


def check_model(model: onnx.ModelProto) -> None:
    """Let ONNX's checker look at a model.

    Raises
    ------
    ModelError
        It is not valid.
    """
    import onnx

    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"the model is not valid ONNX: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """What an error of a library says, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
