"""Small ONNX graphs computed on the host.

The tables of functions and the host stages of programs are all computed here. ONNX Runtime is used if it is installed
(extra ``demo``) and accepts the graph; otherwise ONNX's reference evaluator is. The two may differ in the last bit of a
float32.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.exact_session import exact_session
from openmxu.segments.bodies import with_bodies

if TYPE_CHECKING:
    import onnx
    import onnxruntime

__all__ = ["DOMAINS", "GraphError", "GraphRunner", "make_graph_model", "with_outputs"]

DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Of operators that the host computes; the first two are ONNX's own."""

_ONNX = DOMAINS[:2]
_OLDEST_OPSET = 13
_EVALUATED_OPSET = 21
_IR_VERSION = 8
"""Old enough for every ONNX Runtime that is supported."""


class GraphError(OpenmxuError, ValueError):
    """A graph cannot be computed; the message is one line."""


def make_graph_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    constants: Sequence[onnx.TensorProto],
    opset: int,
) -> onnx.ModelProto:
    """A model of ``nodes``, which are operators of ONNX's opset ``opset``.

    The model declares the oldest opset with the same meaning: ONNX Runtime refuses opsets that it does not know, even
    if they change nothing for the graph.
    """
    import onnx
    from onnx import helper

    versions = [_OLDEST_OPSET]
    inner = [item for node in nodes for item in with_bodies(node)]
    for node in inner:
        if node.domain in ("", "ai.onnx") and onnx.defs.has(node.op_type, max_inclusive_version=opset, domain=""):
            versions.append(onnx.defs.get_schema(node.op_type, opset, "").since_version)
    domains = {node.domain for node in inner} - set(_ONNX)
    imports = [helper.make_opsetid("", min(max(versions), opset))]
    imports += [helper.make_opsetid(domain, _version(inner, domain)) for domain in sorted(domains)]
    graph = helper.make_graph(
        list(nodes), "host", list(inputs), [onnx.ValueInfoProto(name=name) for name in outputs], list(constants)
    )
    return helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """A copy of a model with other tensors as outputs, in this order; inputs may be among them."""
    import onnx
    from onnx import helper

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    given = {item.name for item in copy.graph.input}
    for name in names:
        if name in given:
            copy.graph.node.append(helper.make_node("Identity", [name], [f"{name} seen"]))
        copy.graph.output.append(onnx.ValueInfoProto(name=f"{name} seen" if name in given else name))
    return copy


def _version(nodes: Sequence[onnx.NodeProto], domain: str) -> int:
    """The first version of a domain that has all its operators among some nodes."""
    import onnx

    versions = [1]
    for node in nodes:
        if node.domain == domain and onnx.defs.has(node.op_type, domain=domain):
            first = 1
            while not onnx.defs.has(node.op_type, max_inclusive_version=first, domain=domain):
                first += 1
            versions.append(first)
    return max(versions)


_UNKNOWN = ("NOT_IMPLEMENTED", "registered", "opset")
"""Words of ONNX Runtime's messages about operators or types that it does not know.

ONNX's evaluator may know them; of a graph that is wrong it would make what it can, however long that takes.
"""


class GraphRunner:
    """Computes a model of :func:`make_graph_model`.

    Parameters
    ----------
    optimize
        Whether ONNX Runtime may replace operators by others, as it does by default.

    Raises
    ------
    GraphError
        Neither evaluator knows the graph's operators, or ONNX Runtime knows them and refuses the graph.
    """

    def __init__(self, model: bytes, optimize: bool = False) -> None:
        self._session = None
        try:
            import onnxruntime
        except ImportError:
            reason = "onnxruntime is not installed"
        else:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = 1
            levels = onnxruntime.GraphOptimizationLevel
            options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
            try:
                self._session = exact_session(model, options)
                return
            except Exception as error:  # of many classes that have nothing in common
                reason = _first_line(error)
                if not any(word in reason for word in _UNKNOWN):
                    raise GraphError(reason) from None
        from onnx.reference import ReferenceEvaluator

        try:
            self._reference = ReferenceEvaluator(_with_newest_operators(model))
        except Exception as error:  # as above
            raise GraphError(f"{reason}; {_first_line(error)}") from None

    def run(self, inputs: Mapping[str, NDArray[Any]], seconds: float | None = None) -> list[NDArray[Any]]:
        """All outputs for all inputs.

        Parameters
        ----------
        seconds
            After which ONNX Runtime gives up between two operators: a loop may have no end.

        Raises
        ------
        GraphError
            The inputs do not fit, an operator fails, or time is up.
        """
        try:
            if self._session is not None:
                with _limited(seconds) as options:
                    return [np.asarray(array) for array in self._session.run(None, dict(inputs), options)]
            with np.errstate(all="ignore"):
                return [np.asarray(array) for array in self._reference.run(None, dict(inputs))]
        except Exception as error:  # both evaluators raise many classes of exceptions
            raise GraphError(_first_line(error)) from None


@contextmanager
def _limited(seconds: float | None) -> Iterator[onnxruntime.RunOptions]:
    """Options of a run that ends when time is up."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    if seconds is None:
        yield options
        return

    def end() -> None:
        options.terminate = True

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield options
    finally:
        timer.cancel()


def _with_newest_operators(model: bytes) -> bytes:
    """A model with operators that ONNX's evaluator knows: it has QuantizeLinear of opset 19 and newer only."""
    import onnx
    from onnx import version_converter

    loaded = onnx.load_from_string(model)
    version = next(entry.version for entry in loaded.opset_import if entry.domain == "")
    if version >= _EVALUATED_OPSET or any(node.domain not in ("", "ai.onnx") for node in loaded.graph.node):
        return model
    # The converter wants to know the type of every output.
    inferred = onnx.shape_inference.infer_shapes(loaded)
    kinds = {item.name: item for item in inferred.graph.value_info}
    for item in inferred.graph.output:
        if not item.type.tensor_type.elem_type and item.name in kinds:
            item.CopyFrom(kinds[item.name])
    return version_converter.convert_version(inferred, _EVALUATED_OPSET).SerializeToString()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
