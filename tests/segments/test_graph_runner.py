"""Which evaluator computes a graph of the host."""

from __future__ import annotations

import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper

from openmxu.segments.graph_runner import GraphError, GraphRunner


def graph(node: onnx.NodeProto, *inputs: tuple[int, list[int]]) -> bytes:
    """A model of one node, with inputs of some types and shapes."""
    values = [helper.make_tensor_value_info(name, *given) for name, given in zip(node.input, inputs, strict=True)]
    output = helper.make_tensor_value_info("y", inputs[0][0], None)
    imports = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph([node], "graph", values, [output]), opset_imports=imports, ir_version=8)
    return model.SerializeToString()


def test_wrong_graph_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX's evaluator, which would begin to compute it, is not asked."""
    monkeypatch.setattr(onnx.reference, "ReferenceEvaluator", lambda _: pytest.fail("it is asked"))
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    with pytest.raises(GraphError, match="Incompatible dimensions"):
        GraphRunner(graph(node, (TensorProto.FLOAT, [2, 3]), (TensorProto.FLOAT, [4, 5])))


def test_types_that_onnx_runtime_does_not_know() -> None:
    """It has no Add of uint16."""
    runner = GraphRunner(graph(helper.make_node("Add", ["a", "b"], ["y"]), *[(TensorProto.UINT16, [2])] * 2))
    (sums,) = runner.run({"a": np.array([3, 4], np.uint16), "b": np.array([3, 5], np.uint16)})
    assert list(sums) == [6, 9]
