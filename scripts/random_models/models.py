"""Makes ONNX models of nodes, and runs them in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from openmxu.exact_session import exact_session

__all__ = ["Port", "make_model", "random_bytes", "reference", "reference_outputs"]

Port = tuple[str, str, Sequence[int]]
"""Name of an input or output, numpy name of its type, and its shape without the batch."""


def make_model(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, NDArray[np.generic]],
    inputs: Sequence[Port],
    output: Port,
    opset: int = 21,
    batch: int | str = "batch",
) -> onnx.ModelProto:
    """A model of these nodes; its batch is open unless it is given."""
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [batch, *shape])
        for name, dtype, shape in (*inputs, output)
    ]
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", ports[:-1], ports[-1:], initializers)
    domains = {"": opset} | {node.domain: 1 for node in nodes if node.domain}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def random_bytes(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> NDArray[np.integer]:
    """Every value of an 8-bit type equally often."""
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def reference(
    model: onnx.ModelProto,
    inputs: NDArray[np.generic] | Mapping[str, NDArray[np.generic]],
    optimize: bool = True,
) -> NDArray[np.generic]:
    """The result of ONNX Runtime's CPU provider, at its default optimization level unless ``optimize`` is false.

    ``inputs`` are arrays by name, or the only one, ``x``.

    int8 layers between QuantizeLinear and DequantizeLinear use its integer kernels everywhere, as they do by default on
    ARM; on x86 its default is float32 for some of them.
    """
    (result,) = reference_outputs(model, inputs if isinstance(inputs, Mapping) else {"x": inputs}, optimize).values()
    return result


def reference_outputs(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[np.generic]], optimize: bool = True
) -> dict[str, NDArray[np.generic]]:
    """As :func:`reference`, for all outputs by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    session = exact_session(model.SerializeToString(), options)
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
