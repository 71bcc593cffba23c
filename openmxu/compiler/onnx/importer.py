"""ONNX files to models that are checked, and these to what host and device do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.ir.network import Network
from openmxu.compiler.onnx.host_parts import Model, divide
from openmxu.compiler.onnx.model_file import check_model, load_model, opset_of
from openmxu.compiler.onnx.shape_arithmetic import resolve_shapes
from openmxu.compiler.onnx.structure import check_structure
from openmxu.compiler.operators.builder import node_name
from openmxu.compiler.operators.table import UNKNOWN_OPERATOR, operator_name

if TYPE_CHECKING:
    import onnx

__all__ = ["import_model", "import_network"]


def import_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Model:
    """The network of an ONNX model, and what the host does before and after it.

    Parameters
    ----------
    model
        Path of a file, the file's bytes, or the model itself.

    Raises
    ------
    ModelError
        The model is damaged or invalid.
    UnsupportedOperatorError
        The model is valid, but an operator in it is not supported.
    OSError
        The file cannot be read.
    """
    proto = load_model(model)
    check_structure(proto)
    _check_operators(proto.graph)
    check_model(proto)
    return divide(resolve_shapes(proto).graph, opset_of(proto))


def import_network(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Network:
    """The network of an ONNX model that the device computes alone.

    Raises
    ------
    ModelError, UnsupportedOperatorError, OSError
        As :func:`import_model` does, or the host would have to help.
    """
    imported = import_model(model)
    for stage in (imported.before, imported.after):
        if stage is not None:
            raise ModelError(f"the device alone cannot compute the model, but the host would do {stage.nodes[0]}")
    return imported.network


def _check_operators(graph: onnx.GraphProto) -> None:
    """Find operators that ONNX does not have before its checker does, which would not say what is supported."""
    import onnx

    for node in graph.node:
        operator = operator_name(node)
        if operator == node.op_type and not onnx.defs.has(operator):
            raise UnsupportedOperatorError(node_name(node), operator, UNKNOWN_OPERATOR)
