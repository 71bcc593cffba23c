"""Linear models and scalers of ai.onnx.ml, which scikit-learn's exporter writes, in ONNX's own operators.

ONNX Runtime quantizes those, and the device computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["replace_linear_models"]

_DOMAIN = "ai.onnx.ml"
_TRANSFORMS = {b"NONE": "Identity", b"LOGISTIC": "Sigmoid", b"SOFTMAX": "Softmax"}

_Rewriting = Callable[[onnx.NodeProto, dict[str, Any], Callable[[str, NDArray[Any]], str]], Iterator[onnx.NodeProto]]


def replace_linear_models(graph: onnx.GraphProto) -> None:
    """Replace every node of which the meaning is known."""
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        rewriting = _REWRITINGS.get(node.op_type) if node.domain == _DOMAIN else None
        if rewriting is None or not _is_plain(node, attributes):
            nodes.append(node)
            continue

        def constant(what: str, array: NDArray[Any], node: onnx.NodeProto = node) -> str:
            name = f"{node.name or node.output[0]} {what}"
            graph.initializer.append(numpy_helper.from_array(array, name))
            return name

        nodes += rewriting(node, attributes, constant)
    del graph.node[:]
    graph.node.extend(nodes)


def _is_plain(node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
    """Whether a classifier has a row of coefficients and a number as label for each class, and knows what follows."""
    if attributes.get("post_transform", b"NONE") not in _TRANSFORMS:
        return False
    if node.op_type != "LinearClassifier":
        return True
    return len(attributes.get("classlabels_ints", ())) == len(attributes.get("intercepts", ())) >= 2


def _vector(values: Any) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


def _scaler(
    node: onnx.NodeProto, attributes: dict[str, Any], constant: Callable[[str, NDArray[Any]], str]
) -> Iterator[onnx.NodeProto]:
    offset = constant("offset", _vector(attributes.get("offset", [0])))
    scale = constant("scale", _vector(attributes.get("scale", [1])))
    centered = f"{node.output[0]} centered"
    yield helper.make_node("Sub", [node.input[0], offset], [centered])
    yield helper.make_node("Mul", [centered, scale], [node.output[0]])


def _product(
    node: onnx.NodeProto,
    attributes: dict[str, Any],
    constant: Callable[[str, NDArray[Any]], str],
    target: str,
    rows: int,
) -> onnx.NodeProto:
    coefficients = _vector(attributes["coefficients"]).reshape(rows, -1)
    names = [constant("coefficients", np.ascontiguousarray(coefficients.T))]
    names.append(constant("intercepts", _vector(attributes.get("intercepts") or [0] * rows)))
    return helper.make_node("Gemm", [node.input[0], *names], [target])


def _regressor(
    node: onnx.NodeProto, attributes: dict[str, Any], constant: Callable[[str, NDArray[Any]], str]
) -> Iterator[onnx.NodeProto]:
    sums = f"{node.output[0]} sums"
    yield _product(node, attributes, constant, sums, int(attributes.get("targets", 1)))
    yield helper.make_node(_TRANSFORMS[attributes.get("post_transform", b"NONE")], [sums], [node.output[0]])


def _classifier(
    node: onnx.NodeProto, attributes: dict[str, Any], constant: Callable[[str, NDArray[Any]], str]
) -> Iterator[onnx.NodeProto]:
    label, scores = node.output
    labels = np.asarray(attributes["classlabels_ints"], np.int64)
    sums, best = f"{scores} sums", f"{label} number"
    yield _product(node, attributes, constant, sums, len(labels))
    yield helper.make_node("ArgMax", [sums], [best], axis=-1, keepdims=0)
    yield helper.make_node("Gather", [constant("labels", labels), best], [label])
    yield helper.make_node(_TRANSFORMS[attributes.get("post_transform", b"NONE")], [sums], [scores])


_REWRITINGS: dict[str, _Rewriting] = {
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Scaler": _scaler,
}
