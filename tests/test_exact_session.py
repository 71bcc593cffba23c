"""Sessions of ONNX Runtime are exact on processors whose instructions saturate, and on others."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from openmxu import exact_session as module
from openmxu.exact_session import exact_session

INPUTS = np.full((3, 40), 255, np.uint8)
WEIGHTS = np.full((40, 8), 127, np.int8)
SUMS = INPUTS.astype(np.int32) @ WEIGHTS.astype(np.int32)


@pytest.fixture(params=["this processor", "one that saturates"], autouse=True)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "this processor":
        monkeypatch.setattr(module, "_saturates", lambda: True)


def run(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], result: int, **inputs: np.ndarray) -> np.ndarray:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    graph = helper.make_graph(
        nodes,
        "products",
        infos,
        [helper.make_tensor_value_info("y", result, SUMS.shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return exact_session(model.SerializeToString()).run(None, inputs)[0]


def test_constant_weights() -> None:
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    assert np.array_equal(run(nodes, {"w": WEIGHTS}, TensorProto.INT32, x=INPUTS), SUMS)


def test_two_inputs() -> None:
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    assert np.array_equal(run(nodes, {}, TensorProto.INT32, x=INPUTS, w=WEIGHTS), SUMS)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("has_zero", [False, True])
def test_dequantized_weights(turned: bool, has_zero: bool) -> None:
    """Also those that a Transpose of a constant makes."""
    constants = {
        "w": WEIGHTS.T.copy() if turned else WEIGHTS,
        "one": np.float32(1),
        "scale": np.float32(5200),
        "zero": np.uint8(0),
        **({"w_zero": np.int8(0)} if has_zero else {}),
    }
    weights = ["w_turned" if turned else "w", "one", *(["w_zero"] if has_zero else [])]
    nodes = [
        *([helper.make_node("Transpose", ["w"], ["w_turned"])] if turned else []),
        helper.make_node("DequantizeLinear", ["x", "one", "zero"], ["x_real"]),
        helper.make_node("DequantizeLinear", weights, ["w_real"]),
        helper.make_node("MatMul", ["x_real", "w_real"], ["sums"]),
        helper.make_node("QuantizeLinear", ["sums", "scale", "zero"], ["y"]),
    ]
    found = run(nodes, constants, TensorProto.UINT8, x=INPUTS)
    assert np.array_equal(found, np.rint(SUMS / np.float32(5200)).astype(np.uint8))
