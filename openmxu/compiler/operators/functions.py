"""Values of real functions, for tables.

A table must hold what ONNX Runtime computes, whose float32 exponentials are its own approximations: where it is
installed, it is asked. Otherwise ONNX's reference evaluator answers; its results may differ in the last bit of a
float32, and so a table's entry by one where the function comes that close to the middle between two integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.operators.builder import Builder, node_name
from openmxu.compiler.operators.values import Constant
from openmxu.segments.graph_runner import GraphError, GraphRunner, make_graph_model

if TYPE_CHECKING:
    import onnx

__all__ = ["evaluate_function"]


def evaluate_function(
    nodes: Sequence[onnx.NodeProto], values: NDArray[np.float32], builder: Builder
) -> NDArray[np.float32]:
    """What ``nodes`` make of a vector; inputs that are neither constants nor made by other nodes are that vector.

    Raises
    ------
    ModelError
        The nodes cannot be computed.
    """
    from onnx import TensorProto, helper, numpy_helper

    made = {name for node in nodes for name in node.output}
    used = {name for node in nodes for name in node.input if name} - made
    constants = {name for name in used if isinstance(builder.values.get(name), Constant)}
    inputs = sorted(used - constants)
    model = make_graph_model(
        nodes,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [values.size]) for name in inputs],
        [nodes[-1].output[0]],
        # Without dimensions, of which a constant of one value may have more than the vector.
        [numpy_helper.from_array(builder.values[name].array.reshape(()), name) for name in sorted(constants)],
        builder.opset,
    )
    try:
        # Optimized, because that is how ONNX Runtime computes the model from which the nodes are.
        (result,) = GraphRunner(model.SerializeToString(), optimize=True).run(dict.fromkeys(inputs, values))
    except GraphError as error:
        raise ModelError(f"node {node_name(nodes[-1])!r} ({nodes[-1].op_type}) cannot be computed: {error}") from None
    return np.broadcast_to(np.asarray(result, np.float32).reshape(-1), values.shape)
