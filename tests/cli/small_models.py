"""Small ONNX models for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

K, N = 12, 5


def write_dense_model(path: Path, seed: int = 0) -> None:
    """A QLinearMatMul of uint8 (batch, K) inputs ``x`` to uint8 (batch, N) outputs ``y``."""
    random = np.random.default_rng(seed)
    constants = {
        "x_scale": np.float32(0.02),
        "x_zero_point": np.uint8(120),
        "w": random.integers(-128, 128, (K, N)).astype(np.int8),
        "w_scale": np.float32(0.01),
        "w_zero_point": np.int8(0),
        "y_scale": np.float32(0.05),
        "y_zero_point": np.uint8(131),
    }
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["x", *constants], ["y"], name="layer")],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["batch", K])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, ["batch", N])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
