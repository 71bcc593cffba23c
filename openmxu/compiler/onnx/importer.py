"""ONNX files to models that are checked, and these to what host and device do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openmxu.compiler.errors import UnsupportedOperatorError
from openmxu.compiler.ir.model import Model
from openmxu.compiler.ir.network import Network
from openmxu.compiler.onnx.division import Division
from openmxu.compiler.onnx.input_shapes import Shapes, with_shapes
from openmxu.compiler.onnx.model_file import check_model, load_model
from openmxu.compiler.onnx.structure import check_structure
from openmxu.compiler.operators.builder import node_name
from openmxu.compiler.operators.table import UNKNOWN_OPERATOR, operator_name

if TYPE_CHECKING:
    import onnx

__all__ = ["import_model", "import_network", "read_model"]


def read_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto, shapes: Shapes | None = None) -> Division:
    """An ONNX model that is checked, to be divided between device and host.

    Parameters
    ----------
    model
        Path of a file, the file's bytes, or the model itself.
    shapes
        Values for dimensions that the model leaves open.

    Raises
    ------
    ModelError
        The model is damaged or invalid, or has no such dimensions.
    UnsupportedOperatorError
        The model is valid, but neither device nor host can compute an operator in it.
    OSError
        The file cannot be read.
    """
    proto = load_model(model)
    check_structure(proto)
    if shapes:
        proto = with_shapes(proto, shapes)
    _check_operators(proto.graph)
    check_model(proto)
    return Division(proto)


def import_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto, *, strict: bool = False) -> Model:
    """An ONNX model as networks of the device and graphs for the host.

    Parameters
    ----------
    model
        As of :func:`read_model`.
    strict
        The device must compute all of it.

    Raises
    ------
    ModelError, UnsupportedOperatorError, OSError
        As :func:`read_model` does, or the device alone must compute the model and cannot.
    """
    return read_model(model).model(strict=strict)


def import_network(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Network:
    """The network of an ONNX model that the device computes alone.

    Raises
    ------
    ModelError, UnsupportedOperatorError, OSError
        As :func:`import_model` does where it is strict.
    """
    (network,) = import_model(model, strict=True).networks
    return network


def _check_operators(graph: onnx.GraphProto) -> None:
    """Find operators that ONNX does not have before its checker does, which would not say what is supported."""
    import onnx

    for node in graph.node:
        operator = operator_name(node)
        if operator == node.op_type and not onnx.defs.has(operator):
            raise UnsupportedOperatorError(node_name(node), operator, UNKNOWN_OPERATOR)
